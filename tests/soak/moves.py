"""What is done with a checkpoint between two runs: divided anew, or written out for another query to begin with.

python -m tests.soak.moves KIND CHECKPOINT TO [--partitions N --key-groups N]

With numbers it is ``rescale``, else ``export_state``. The last line printed is what these return.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import spark_glue
from tests.soak.runs import ROOT
from tests.soak.workload import spec_of

__all__ = ["exported", "rescaled"]


def rescaled(kind: str, checkpoint: Path, to: Path, partitions: int, key_groups: int) -> int:
    """Divides a checkpoint anew, in a process of its own; returns the last micro-batch in it."""
    return _moved(kind, checkpoint, to, "--partitions", str(partitions), "--key-groups", str(key_groups))


def exported(kind: str, checkpoint: Path, to: Path) -> int:
    """Writes a savepoint, in a process of its own; returns how many windows are in it."""
    return _moved(kind, checkpoint, to)


def _moved(*arguments: object) -> int:
    command = [sys.executable, "-m", "tests.soak.moves", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.moves")
    for name in ("kind", "checkpoint", "to"):
        parser.add_argument(name)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--key-groups", type=int)
    options = parser.parse_args()
    config = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False, "spark.sql.session.timeZone": "UTC"}
    spark = spark_glue.session(app_name="moves", master="local[2]", config=config)
    spark.sparkContext.setLogLevel("OFF")
    given = options.checkpoint, spec_of(options.kind), options.to
    if options.partitions is None:
        told = spark_glue.export_state(*given)
    else:
        told = spark_glue.rescale(*given, partitions=options.partitions, key_groups=options.key_groups)
    print(told, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
