"""What is done with a checkpoint between two runs: it is written out for another query to begin with.

python -m tests.soak.moves KIND CHECKPOINT TO

The last line printed is what ``export_state`` returns.
"""

import subprocess
import sys
from pathlib import Path

import spark_glue
from tests.soak.runs import ROOT
from tests.soak.workload import spec_of

__all__ = ["exported"]


def exported(kind: str, checkpoint: Path, to: Path) -> int:
    """Writes a savepoint, in a process of its own; returns how many windows are in it."""
    command = [sys.executable, "-m", "tests.soak.moves", kind, str(checkpoint), str(to)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.splitlines()[-1])


def main(kind: str, checkpoint: str, to: str) -> None:
    config = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False, "spark.sql.session.timeZone": "UTC"}
    spark = spark_glue.session(app_name="moves", master="local[2]", config=config)
    spark.sparkContext.setLogLevel("OFF")
    print(spark_glue.export_state(checkpoint, spec_of(kind), to), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
