"""Why and inspect of a query's stored state, while it runs and when it has been stopped; from the shell as well."""

import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import fastwin as fw
import spark_glue
from fastwin.columns.keys import KeyCodec
from fastwin.errors import SpecError, StateError
from fastwin.run.why.answer import key_columns
from spark_glue.apps.state import inspect_command, why_command
from spark_glue.apps.state.main import load_spec, shares_in_text
from spark_glue.plan.keygroups import number_of
from spark_glue.plan.settings import BATCH_BYTES_KEY
from spark_glue.state.book import DeltaLog
from spark_glue.state.log import StoredHead
from spark_glue.state.stored import Checkpoint
from tests.support.spark_streams import Recorder, Source, run_stream, start

ROOT = Path(__file__).resolve().parents[2]
START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)
DOTTED = (
    fw.key_by("user.name")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("2 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count())
)
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])


def table(*rows: tuple[str, float, int]) -> pa.Table:
    """Rows as (key, second, value)."""
    keys, seconds, values = zip(*rows, strict=True)
    times = pa.array([START_MS * 1_000 + round(second * 1_000_000) for second in seconds]).cast(SCHEMA.field("ts").type)
    return pa.table([pa.array(keys), times, pa.array(values)], schema=SCHEMA)


TABLES = [
    table(*((f"k{i % 7}", 3.0 * i, i) for i in range(30))),
    table(*((f"k{i % 7}", 90 + 2.0 * i, i) for i in range(40))),
    table(("k0", 171.0, 1)),
]


def expected(watermark: int) -> dict[tuple, tuple]:
    """What each open window holds, counted plainly."""
    held = defaultdict(lambda: [0, 0])
    for rows in TABLES:
        for row in rows.to_pylist():
            ms = round(row["ts"].timestamp() * 1_000)
            for window in fw.SlidingEventTimeWindows.of("2 min", "1 min").assign_windows(None, ms, None):
                if window.end - 1 > watermark:
                    held[row["k"], *window][0] += 1
                    held[row["k"], *window][1] += row["v"]
    return {window: tuple(values) for window, values in held.items()}


def said(report: fw.WhyReport) -> str:
    return " ".join(report.text.split())


def told(frame) -> dict[tuple, tuple]:
    rows = frame.selectExpr("k", "unix_millis(window_start)", "unix_millis(window_end)", "n", "total").collect()
    return {tuple(row)[:3]: tuple(row)[3:] for row in rows}


def test_a_query_that_runs_and_one_that_was_stopped(spark, tmp_path, capsys, monkeypatch):
    source = Source(tmp_path, SCHEMA)
    source.put(*TABLES[:2])
    frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=4)
    query = start(frame, tmp_path, Recorder())
    checkpoint = str(tmp_path / "checkpoint")
    watermark = START_MS + 171_000 - 10_001  # a last micro-batch without rows has come to it
    try:
        query.processAllAvailable()
        stored = Checkpoint(checkpoint, 0, "why")
        batch, numbers = stored.progress().batch, set(stored.heads)
        chunks = sorted(map(tuple, stored.chunks().collect()))
        source.put(*TABLES[2:])
        query.processAllAvailable()
        assert sorted(map(tuple, stored.chunks().collect())) == chunks  # all of one batch, though another one came
        assert {number for number, _ in stored.shares()} == set(map(number_of, numbers))
        assert stored.progress().batch == batch < Checkpoint(checkpoint, 0, "why").progress().batch
        report = spark_glue.why(query, SPEC, key="k0", at=datetime(2026, 1, 1, 0, 2, 30, tzinfo=UTC))
        found = spark_glue.inspect(query, SPEC)
        assert told(found) == expected(watermark)
    finally:
        query.stop()
    assert [window.held for window in report.windows] == [True, True]
    assert report.watermark == watermark
    first = report.windows[0]
    assert (first.start - START_MS, first.end - START_MS) == (60_000, 180_000)
    assert tuple(first.holds.values()) == expected(watermark)["k0", first.start, first.end]
    assert first.fires_at == first.end - 1
    assert any("the last one that was committed" in sentence for sentence in report.time)
    stopped = spark_glue.inspect(tmp_path / "checkpoint", SPEC)
    assert told(stopped) == expected(watermark)
    with monkeypatch.context() as patched:
        patched.setattr("spark_glue.state.stored._PIECE", 100)
        cut = spark_glue.inspect(checkpoint, SPEC)
    before = spark.conf.get(BATCH_BYTES_KEY)
    spark.conf.set(BATCH_BYTES_KEY, 1)  # the chunks of a share come in many batches, and in pieces
    try:
        assert told(cut) == expected(watermark)
    finally:
        spark.conf.set(BATCH_BYTES_KEY, before)
    assert {"fired", "fires_at", "fires_by", "gone_at", "timers", "bytes", "share"} < set(stopped.columns)
    some = told(spark_glue.inspect(checkpoint, SPEC, keys=["k3"]))
    assert {key: some[key] for key in some if key[0] == "k3"} == {
        key: value for key, value in expected(watermark).items() if key[0] == "k3"
    }
    pieces = told(spark_glue.inspect(checkpoint, SPEC, shares=[0])) | told(
        spark_glue.inspect(checkpoint, SPEC, shares={1})
    )
    assert len(spark_glue.inspect(checkpoint, SPEC, shares=range(1)).collect()) < len(pieces)
    assert pieces == expected(watermark)
    gone = spark_glue.why(tmp_path / "checkpoint", SPEC, key="k0", at="2026-01-01T00:00:30+00:00")
    assert [window.held for window in gone.windows] == [False, False]
    assert "It is gone" in gone.windows[0].sentences[0]
    passed = "The watermark passed its end in micro-batch"
    assert any(sentence.startswith(passed) for sentence in gone.windows[1].sentences)
    assert "moved it there" not in gone.text  # a path alone does not know of the rows
    asked = spark_glue.why(query, SPEC, key="k0", at="2026-01-01T00:00:30+00:00")
    assert "A row of 2026-01-01 01:01:26.999, or up to 1 ms later, in micro-batch 0 moved it there." in said(asked)
    with pytest.raises(StateError, match=r"why: .*written by another spec"):
        spark_glue.why(checkpoint, SPEC.allowed_lateness("1 s"), key="k0")
    with pytest.raises(SpecError, match="key must be a value for each of k"):
        spark_glue.why(checkpoint, SPEC, key=("k0", 1))
    with pytest.raises(SpecError, match="shares: must be numbers of shares"):
        spark_glue.inspect(checkpoint, SPEC, shares="0")
    with pytest.raises(SpecError, match="keys: must be a list of keys"):
        spark_glue.inspect(checkpoint, SPEC, keys="k0")
    with pytest.raises(SpecError, match="has no state that can be read"):
        spark_glue.why(str(tmp_path / "input"), SPEC, key="k0")
    with pytest.raises(
        SpecError, match=r"reader of state finds no path with ' '\. On a local disk, give it a symbolic link"
    ):
        spark_glue.why(str(tmp_path / "in put"), SPEC, key="k0")

    shared_with_commands(spark, monkeypatch)
    (tmp_path / "job.py").write_text(
        "import fastwin as fw\n\nminutes = fw.key_by('k').event_time('ts').window(fw.SlidingEventTimeWindows.of('2 min', "
        "'1 min')).bad_rows('drop').aggregate(n=fw.Count(), total=fw.Sum('v'))\n"
    )
    common = ["--checkpoint", checkpoint, "--spec", f"{tmp_path / 'job.py'}:minutes"]
    assert run(["why", *common, "--key", "k0", "--at", "2026-01-01T00:02:30+00:00"]) == 0
    assert "It fires when the watermark reaches" in capsys.readouterr().out
    assert run(["why", *common, "--key", "k0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == "k0"
    assert run(["inspect", *common, "--where", "k = 'k3'", "--rows", "1"]) == 0
    shown = capsys.readouterr().out
    assert "k3" in shown
    assert "only showing top 1 row" in shown
    assert run(["inspect", *common, "--key", "k3"]) == 0
    keys = re.findall(r"^\|(k\d) ", capsys.readouterr().out, re.MULTILINE)
    assert keys == ["k3"] * sum(key[0] == "k3" for key in expected(watermark))
    assert run(["inspect", *common, "--shares", "0", "--rows", "1000"]) == 0
    assert len(re.findall(r"^\|k\d ", capsys.readouterr().out, re.MULTILINE)) == len(
        told(spark_glue.inspect(checkpoint, SPEC, shares=[0]))
    )
    with pytest.raises(SpecError, match="--key: give it once for each of k"):
        run(["why", *common])
    for words, says in (
        (("--where", "n >"), r"--where: 'n >' is no condition on k, window_start, .*: .*PARSE_SYNTAX_ERROR"),
        (("--where", "m > 1"), r"--where: 'm > 1' is no condition on k, window_start, .*: .*UNRESOLVED_COLUMN"),
        (("--rows", "0"), "--rows: must be at least 1, got 0"),
        (("--out", str(tmp_path)), f"--out: {tmp_path} is there already; name a new folder"),
        (("--where", "k = 5"), r"the windows cannot be shown with --where 'k = 5': .*CAST_INVALID_INPUT"),
        (("--out", f"{tmp_path}/job.py/out"), f"--out: {tmp_path}/job.py/out cannot be written: .*Exception"),
    ):
        with pytest.raises(SpecError, match=says):
            run(["inspect", *common, *words])


def test_a_key_column_with_a_dot_is_asked_for_from_the_shell(spark, tmp_path, monkeypatch, capsys):
    rows = TABLES[0].rename_columns([{"k": "user.name"}.get(name, name) for name in TABLES[0].column_names])
    run_stream(spark, DOTTED, [rows], tmp_path, watermark="1 day", key_groups=3)
    shared_with_commands(spark, monkeypatch)
    where = shell_options(
        tmp_path / "dotted.py",
        "fw.key_by('user.name').event_time('ts').window(fw.TumblingEventTimeWindows.of('2 min')).bad_rows('drop')"
        ".aggregate(n=fw.Count())",
    )
    assert run(["inspect", *where, "--key", "k3"]) == 0
    assert set(re.findall(r"^\|(k\d) ", capsys.readouterr().out, re.MULTILINE)) == {"k3"}


def test_a_null_key_is_asked_for_from_the_shell(spark, tmp_path, monkeypatch, capsys):
    rows = TABLES[0].set_column(0, "k", pa.array([None, "null"] * 15))
    run_stream(spark, SPEC, [rows], tmp_path, watermark="1 day", key_groups=3)
    shared_with_commands(spark, monkeypatch)
    where = shell_options(
        tmp_path / "nulls.py",
        "fw.key_by('k').event_time('ts').window(fw.SlidingEventTimeWindows.of('2 min', '1 min')).bad_rows('drop')"
        ".aggregate(n=fw.Count(), total=fw.Sum('v'))",
    )
    assert run(["why", *where, "--null-key", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["key"] is None and report["windows"]
    for words, shown in ((["--null-key"], "NULL"), (["--key", "null"], "null")):
        assert run(["inspect", *where, *words]) == 0
        assert set(re.findall(r"^\|(NULL|null) *\|", capsys.readouterr().out, re.MULTILINE)) == {shown}


def test_state_of_another_spec_is_told_in_a_line_from_the_shell(spark, tmp_path, monkeypatch):
    """Also where Spark's workers find it, as ``inspect`` does."""

    class Late(fw.EventTimeTrigger):
        pass

    Late.__module__, Late.__qualname__ = "__main__", "Late"
    minutes = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("2 min")).bad_rows("drop")
    spec = minutes.trigger(Late()).aggregate(n=fw.Count())
    run_stream(spark, spec, [TABLES[0]], tmp_path, watermark="1 day", key_groups=3)
    shared_with_commands(spark, monkeypatch)
    file = tmp_path / "late.py"
    where = shell_options(
        file,
        "fw.key_by('k').event_time('ts').window(fw.TumblingEventTimeWindows.of('2 min')).bad_rows('drop')"
        ".trigger(Late()).aggregate(n=fw.Count())",
    )
    file.write_text(file.read_text().replace("\n\n", "\n\nclass Late(fw.EventTimeTrigger): pass\n", 1))
    for words in (["inspect", *where], ["why", *where, "--key", "k0"]):
        with pytest.raises(
            StateError, match=r"trigger was __main__\.Late\(\), is late\.Late\(\); a class of the program"
        ) as told:
            run(words)
        assert "\n" not in str(told.value)


def shell_options(file, spec: str) -> list[str]:
    """Returns the options for the checkpoint beside a new file, which gets the spec of its query, in words of Python.

    The name of the file is a module's, so each test has one of its own.
    """
    file.write_text(f"import fastwin as fw\n\nspec = {spec}\n")
    return ["--checkpoint", str(file.with_name("checkpoint")), "--spec", f"{file}:spec"]


def shared_with_commands(spark, monkeypatch) -> None:
    """Lets commands use the session that all tests share: they neither stop it nor leave anything there."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    monkeypatch.setattr(spark.sparkContext, "environment", dict(spark.sparkContext.environment))


def test_a_function_of_a_file_is_found_by_the_workers(spark, tmp_path):
    """The file lies in another folder than the shell is in, and takes something from a neighbour."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "beside_the_job.py").write_text("SIZE = '2 min'\n")
    path = tmp_path / "jobs" / "job_with_a_class.py"
    path.write_text(
        "import fastwin as fw\nfrom beside_the_job import SIZE\n\n\n"
        "class Rows(fw.ProcessWindowFunction):\n"
        "    def process(self, key, context, elements):\n        yield len(elements)\n\n\n"
        "spec = (fw.key_by('k').event_time('ts').window(fw.TumblingEventTimeWindows.of(SIZE)).bad_rows('drop')\n"
        "    .process(Rows(), output='n bigint'))\n"
    )
    before = list(sys.path)
    try:
        spec = load_spec(f"{path}:spec")
        sys.path.remove(str(path.parent))  # the tests' workers know nothing of that folder
        cloudpickle.register_pickle_by_value(sys.modules["job_with_a_class"])
        run_stream(spark, spec, [TABLES[0]], tmp_path, watermark="1 day", key_groups=3)
    finally:
        sys.path[:] = before
        cloudpickle.unregister_pickle_by_value(sys.modules.pop("job_with_a_class"))
    done = subprocess.run(
        [sys.executable, "-m", "fastwin", "inspect", "--checkpoint", "checkpoint", "--spec", f"jobs/{path.name}:spec"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(re.findall(r"^\|(k\d) ", done.stdout, re.MULTILINE)) == {row["k"] for row in TABLES[0].to_pylist()}


def run(arguments: list[str]) -> int:
    parser = ArgumentParser()
    commands = parser.add_subparsers()
    why_command(commands)
    inspect_command(commands)
    parsed = parser.parse_args(arguments)
    return parsed.run(parsed)


def test_shares_as_text():
    assert shares_in_text("0-2, 5") == {0, 1, 2, 5}
    for text in ("", "a", "3-1", "-1"):
        with pytest.raises(SpecError, match="--shares: must be numbers such as 0-7 or 0,3,5"):
            shares_in_text(text)


def test_arguments(tmp_path):
    for call in (spark_glue.why, spark_glue.inspect):
        with pytest.raises(SpecError, match="spec: must be what apply was given"):
            call(str(tmp_path), None)
        with pytest.raises(SpecError, match="checkpoint: must be a checkpoint's path or a StreamingQuery"):
            call(7, SPEC)


@pytest.mark.parametrize(
    "keys, key", [((), None), (("k",), "a"), (("k",), None), (("v",), 7), (("k", "v"), ("a", 7))], ids=str
)
def test_a_key_is_looked_for_in_its_share(keys, key):
    spec = fw.key_by(*keys).event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    plan = fw.plan(spec, SCHEMA)
    table = plan.config.codec.new_table()
    columns = key_columns(plan, key)
    ids = KeyCodec.intern(table, plan.config.codec.encode(columns, 1))
    stored = object.__new__(Checkpoint)
    stored.heads = {1: StoredHead(DeltaLog(), 64, 8)}
    assert number_of(stored.group_of(plan, columns)) == KeyCodec.groups(table, ids, 64)[0] % 8


@pytest.mark.parametrize(
    "text, says",
    [
        ("minutes", "must be MODULE:NAME"),
        ("no.such.module:minutes", "cannot be imported"),
        ("no/such/file.py:minutes", "cannot be imported"),
        ("./jobs/shops:spec", "'./jobs/shops' is neither a module, such as jobs.shops, nor a file that ends in .py"),
        ("jobs/shops:spec", "nor a file that ends in .py"),
        ("..shops:spec", "nor a file that ends in .py"),
        ("fastwin:Count", "is no WindowSpec or JoinSpec but type"),
        ("fastwin.times:nothing", "'fastwin.times' has no 'nothing'"),
    ],
)
def test_specs_that_are_not_there(text, says):
    with pytest.raises(SpecError, match=f"--spec: .*{says}"):
        load_spec(text)


@pytest.mark.parametrize(
    "text, says",
    [
        ("import fastwin as fw\n\nspec = fw.key_by('k'\n", r"SyntaxError: .*\(a_broken_job.py, line 3\)"),
        ("import fastwin as fw\n\nspec = fw.key_by(\n    'k', 5)\n", r"SpecError: .*a_broken_job.py, line 3\)"),
        (
            "import os\nTOPIC = os.environ['NO_SUCH_TOPIC']\n",
            r"KeyError: 'NO_SUCH_TOPIC' \(.*/a_broken_job.py, line 2\)",
        ),
        ("SIZE = 5 + 'min'\n", r"TypeError: unsupported .*/a_broken_job.py, line 1\)"),
        ("spec = '\0'\n", "null bytes"),
        ("import sys\nsys.exit(3)\n", r"SystemExit: 3 .*/a_broken_job.py, line 2\)"),
        ("import sys\ndel sys.modules[__name__]\nraise OSError(5)\n", "OSError: 5"),
    ],
)
def test_a_file_that_cannot_be_imported(tmp_path, text, says):
    path = tmp_path / "a_broken_job.py"
    path.write_text(text)
    with pytest.raises(SpecError, match=f"--spec: '{path}' cannot be imported: .*{says}"):
        load_spec(f"{path}:spec")
    assert path.stem not in sys.modules


@pytest.mark.parametrize("name, whose", [("queue", "Python's own"), ("numpy", "numpy/__init__.py")])
def test_a_file_takes_no_other_modules_place(tmp_path, name, whose):
    before = sys.modules[name]
    (tmp_path / f"{name}.py").write_text("import fastwin as fw\n\nspec = fw.key_by('k')\n")
    with pytest.raises(SpecError, match=rf"'{name}', .* already \(.*{whose}\); give it as PACKAGE\.{name}:NAME"):
        load_spec(f"{tmp_path / name}.py:spec")
    assert sys.modules[name] is before


def test_a_file_of_the_name_of_one_that_was_read(tmp_path):
    path = tmp_path / "a_job_of_its_own.py"
    path.write_text("import fastwin as fw\n\nspec = fw.key_by('k').count_window(3).aggregate(n=fw.Count())\n")
    assert load_spec(f"{path}:spec").keys == ("k",)
    assert load_spec(f"{path}:spec").keys == ("k",)  # the same once more
    (tmp_path / "other").mkdir()
    other = path.rename(tmp_path / "other" / path.name)
    with pytest.raises(SpecError, match=r"--spec: .* another one of this name already \(.*/a_job_of_its_own.py\)"):
        load_spec(f"{other}:spec")
