"""``fastwin pvuv`` over folders with much that is no access log: so much is kept, and the rest is counted."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrame, Row

from spark_glue.apps.pvuv.malformed import Malformed
from spark_glue.apps.pvuv.modules import Events
from spark_glue.apps.pvuv.progress import Batches
from spark_glue.apps.pvuv.requests import COUNTS, requests_of
from spark_glue.plan.queries import OBSERVED
from spark_glue.stages.counters import COUNTERS

GOOD = '1.2.3.4 - - [17/May/2015:10:0{}:03 +0000] "GET /blog HTTP/1.1" 200 5 "-" "Agent/1"'


@pytest.mark.parametrize("most", [10, 11, 25])
def test_malformed_lines_of_a_micro_batch_are_bounded(spark, tmp_path, monkeypatch, most):
    monkeypatch.setattr("spark_glue.apps.pvuv.malformed._MOST_LINES", most)
    lines = [f"line {number}" for number in range(10)] + ["x" * 20_000]
    frame = spark.createDataFrame([(line,) for line in [*lines, None, None]], "line string").repartition(3)
    monkeypatch.setattr(type(frame), "collect", lambda self: pytest.fail("all were fetched"))
    said: list[str] = []
    keep = Malformed(tmp_path / "malformed.log", said.append)
    for batch in range(2):
        keep(frame, batch)
    kept = (tmp_path / "malformed.log").read_text().splitlines()
    assert len(kept) == 2 * min(most, 11) and set(kept) <= {*lines[:10], "x" * 8_192}
    assert keep.left_out == (2 if most == 10 else 0)
    told = [f"batch {batch}: malformed.log has 10 malformed lines of it, and 1 not" for batch in range(2)]
    assert said == (told if most == 10 else [])


def test_the_file_of_malformed_lines_does_not_grow_for_ever(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_glue.apps.pvuv.malformed._MOST_BYTES", 35)
    frame = spark.createDataFrame([(f"line {number:04}",) for number in range(2)], "line string").coalesce(1)
    path, said = tmp_path / "malformed.log", []
    keep = Malformed(path, said.append)
    for batch in range(3):
        keep(frame, batch)
    assert path.read_text().splitlines() == ["line 0000", "line 0001", "line 0000"]
    assert keep.left_out == 3
    assert said == ["malformed.log is full: further malformed lines are counted alone"]
    again = Malformed(path, said.append)  # as after a restart with --follow
    again(frame, 3)
    assert (path.stat().st_size, again.left_out) == (30, 2)


def test_a_folder_takes_several_micro_batches(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_glue.apps.pvuv.requests._FILES_AT_ONCE", 2)
    logs, end = tmp_path / "logs", tmp_path / "end"
    for folder in (logs, end):
        folder.mkdir()
    for number in range(3):
        (logs / f"{number}.log").write_text(GOOD.format(number) + "\n")
    frame = requests_of(spark, logs, end, Events("path"), copies=False).select("module", "visitor")
    found: list[list[str]] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.append([row.module for row in batch.collect()])

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [rows for rows in found if rows] == [["/blog"] * 2, ["/blog"]]


def progress_of(batch_id: int, lines: dict, **windows: int) -> SimpleNamespace:
    """Returns the progress of a micro-batch, with what was observed in it as Spark tells it."""
    observed = {COUNTS: Row(**lines), "fastwin": Row(**{OBSERVED: dict.fromkeys(COUNTERS, 0) | windows})}
    return SimpleNamespace(batchId=batch_id, numInputRows=1, durationMs={}, observedMetrics=observed)


def test_lines_that_are_too_late_or_misdated_are_told():
    said: list[str] = []
    batches = Batches(said.append)
    lines = {"events": 10, "malformed": 2, "skipped": 1, "newest_ms": 1_700_000_000_000}
    first, second = progress_of(0, lines, late=3, dropped=1, bad=2), progress_of(1, lines, bad=5)
    batches.look(SimpleNamespace(recentProgress=[first, second]))
    assert batches.total == {"events": 17, "malformed": 4, "skipped": 2, "late": 4, "misdated": 3}
    assert [line.split()[:5] for line in said[1:3]] == [["0", "10", "2", "1", "4"], ["1", "7", "2", "1", "0"]]
    assert said[3:] == ["batch 1: 3 more lines are dated before 1970 or more than a day ahead"]


def test_impossible_dates_are_no_times(spark, tmp_path):
    now = datetime.now(UTC).replace(microsecond=0)
    ahead = [f"{now + timedelta(hours=hours):%d/%b/%Y:%H:%M:%S +0000}" for hours in (23, 25)]
    dates = ["01/Jan/0001:00:00:00 +1400", "31/Dec/1969:23:59:59 +0000", "01/Jan/1970:00:00:00 +0000", *ahead]
    dates.append("31/Dec/9999:23:59:59 -0100")
    logs, end = tmp_path / "logs", tmp_path / "end"
    for folder in (logs, end):
        folder.mkdir()
    lines = [
        GOOD.replace("17/May/2015:10:0{}:03 +0000", date).replace("/blog", f"/{n}") for n, date in enumerate(dates)
    ]
    (logs / "log").write_text("\n".join(["malformed", *lines]))
    found: dict[str | None, int | None] = {}

    def keep(batch: DataFrame, _: int) -> None:
        found.update({row.module: row.ms for row in batch.selectExpr("module", "unix_millis(ts) ms").collect()})

    frame = requests_of(spark, logs, end, Events("path"), copies=False)
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    newest = int(now.timestamp()) * 1_000 + 23 * 3_600_000
    assert found == {None: None, "/0": None, "/1": None, "/2": 0, "/3": newest, "/4": None, "/5": None}
    told = query.recentProgress[0].observedMetrics[COUNTS]
    assert told.asDict() == {"events": 6, "malformed": 1, "skipped": 0, "newest_ms": newest}
