"""``fastwin rescale`` in a shell: a stopped query goes on from the new checkpoint, and what does not fit gets one line."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from spark_glue.apps.state.main import load_spec
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, rows_of, start
from tests.support.spark_versions import SPARK

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 600
SHOPS = """\
import fastwin as fw

spec = (
    fw.key_by("k").event_time("ts").bad_rows("drop")
    .window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)
other = spec.allowed_lateness("1 s")
"""
BEFORE = [events(i, 120, start_ms=START_MS + i * 80_000, span_ms=80_000) for i in range(2)]
AFTER = [events(5 + i, 120, start_ms=START_MS + (2 + i) * 60_000, span_ms=90_000) for i in range(3)]
SHUFFLE = "spark.sql.shuffle.partitions"


class Shell:
    """Runs ``fastwin rescale`` in a folder, as from a shell. All that it has printed is told when it does not fit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "temporary").mkdir()

    def __call__(self, *words: str, status: int = 0) -> tuple[str, str]:
        """Runs it with these words; returns what it prints to stdout and to stderr. status: that it has to end with."""
        command = [sys.executable, "-X", "faulthandler", "-m", "fastwin", "rescale", *words]
        given = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder / "temporary")}
        paths = [self.folder / "temporary" / name for name in ("stdout", "stderr")]
        # Files take it, and no pipes, which the JVM would hold open when the command is stopped.
        with paths[0].open("wb") as out, paths[1].open("wb") as err:
            process = subprocess.Popen(
                command, stdout=out, stderr=err, cwd=self.folder, env=os.environ | given, start_new_session=True
            )
            try:
                found: int | str = process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # it prints where it stands
                found = f"stopped after {LIMIT_S} s ({process.wait(60)})"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        told = [path.read_text(errors="replace") for path in paths]
        if found != status:
            logs = [path.read_text(errors="replace")[-5000:] for path in self.folder.glob("temporary/*/spark.log")]
            names = "stdout", "stderr", *("Spark's log" for _ in logs)
            texts = (f"--- {name}\n{text}" for name, text in zip(names, [*told, *logs], strict=True))
            pytest.fail("\n".join([f"fastwin rescale {' '.join(words)}: {found}, not {status}", *texts]), pytrace=False)
        return told[0], told[1]

    def refused(self, *words: str) -> str:
        """Runs it with words that do not fit; returns the one line that it prints, without its beginning."""
        out, err = self(*words, status=1)
        assert not out, f"stdout: {out}stderr: {err}"
        assert err.startswith("fastwin: "), err
        assert len(err.splitlines()) == 1, err
        return err.removeprefix("fastwin: ").rstrip("\n")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "shops.py").write_text(SHOPS)
    return Shell(tmp_path)


@pytest.fixture
def two_partitions(spark):
    before = spark.conf.get(SHUFFLE)
    spark.conf.set(SHUFFLE, 2)
    yield
    spark.conf.set(SHUFFLE, before)


def run(spark, spec: fw.WindowSpec, source: Source, folder: Path, key_groups: int) -> dict[int, pa.Table]:
    """Runs a query, with its checkpoint below a folder, until all is read; returns its micro-batches."""
    recorder = Recorder()
    frame = spark_glue.apply(spec, source.frame(spark), watermark="20 s", key_groups=key_groups)
    start(frame, folder, recorder, available_now=True).awaitTermination()
    return recorder.tables


@pytest.mark.long
@pytest.mark.skipif(SPARK < (4, 3), reason="Spark moves stored state from 4.3 on")
def test_a_query_goes_on_from_what_the_command_has_written(spark, shell, two_partitions):
    folder = shell.folder
    spec = load_spec(f"{folder / 'shops.py'}:spec")
    for name in ("undisturbed", "minutes"):
        (folder / name).mkdir()
    undisturbed = Source(folder / "undisturbed", BEFORE[0].schema)
    undisturbed.put(*BEFORE, *AFTER)
    expected = run(spark, spec, undisturbed, folder / "undisturbed", 6)
    source = Source(folder / "minutes", BEFORE[0].schema)
    source.put(*BEFORE)
    before = run(spark, spec, source, folder / "minutes", 6)

    # Relative paths, and all as the page on Spark has it.
    words = ["--checkpoint", "minutes/checkpoint", "--to", "wider/checkpoint", "--partitions", "5"]
    assert "was written for another spec" in shell.refused(*words, "--spec", "shops.py:other")
    assert not (folder / "wider").exists()
    out, err = shell(*words, "--spec", "shops.py:spec", "--key-groups", "7")
    last = max(before) + 2  # Spark's micro-batch that moves the groups, and ours
    assert out.splitlines() == [
        f"wider/checkpoint: 5 partitions, up to micro-batch {last}",
        "Start the query with it as checkpointLocation, and key_groups=7 in apply.",
    ]
    assert not err, err
    shutil.rmtree(folder / "minutes" / "checkpoint")  # nothing of it is needed
    source.put(*AFTER)
    after = run(spark, spec, source, folder / "wider", 7)
    assert min(after) == last + 1
    written = (folder / "wider" / "checkpoint" / "state" / "0").glob(f"*/{last + 2}_*.changelog")
    assert {path.parent.name for path in written} == {str(number) for number in range(5)}
    found = rows_of(pa.concat_tables([*before.values(), *after.values()]))
    assert found == rows_of(pa.concat_tables(expected.values()))
    assert min(sum(table.num_rows for table in part.values()) for part in (before, after)) > 10


@pytest.mark.long
@pytest.mark.slow
def test_what_does_not_fit_is_told_in_one_line(shell):
    (shell.folder / "empty").mkdir()
    given = {"--checkpoint": "empty", "--to": "wider", "--spec": "shops.py:spec", "--partitions": "5"}

    def refused(**other: str) -> str:
        pairs = given | {f"--{name}": value for name, value in other.items()}
        return shell.refused(*(word for pair in pairs.items() for word in pair))

    assert refused(spec="shops") == "--spec: must be MODULE:NAME, such as jobs.minutes:spec, got 'shops'"
    assert refused(spec="shops.py:minutes") == "--spec: 'shops.py' has no 'minutes'"
    assert refused(spec="shops.py:fw") == "--spec: 'fw' in 'shops.py' is no WindowSpec or JoinSpec but module"
    assert refused(spec="stores.py:spec").startswith("--spec: 'stores.py' cannot be imported: ")
    assert refused(partitions="0") == "partitions: must be a number from 1 on, got 0"
    if SPARK >= (4, 3):
        assert refused(to="a new one").startswith("to: Spark cannot divide state in a folder whose path has ' ', got ")
        assert refused().startswith("rescale: empty has no state that can be read: ")
    else:
        assert refused().startswith("rescale: needs Spark 4.3 or newer")
    assert {path.name for path in shell.folder.iterdir()} == {"empty", "shops.py", "temporary"}
    # What argparse says comes below its usage.
    for words, told in (
        (["--partitions", "5"], "the following arguments are required: --checkpoint, --spec, --to"),
        (
            [*(word for pair in given.items() for word in pair), "--partitions", "x"],
            "argument --partitions: invalid int",
        ),
    ):
        _, err = shell(*words, status=2)
        assert told in err.splitlines()[-1], err
