"""The micro-batch that divides state anew, without Spark."""

import pyarrow as pa
import pytest
from pyspark.sql.streaming.stateful_processor import TimerValues

from fastwin.core.memory.regions import use_files
from fastwin.errors import StateError
from fastwin.run.replica import open_replica
from spark_glue.plan.keygroups import RECORD_ID, ids
from spark_glue.stages.rescaling import Divided, RescalingProcessor
from spark_glue.state import folders, spilled
from spark_glue.state.cutparts import STATE, cut
from spark_glue.state.folders import ROOT_VARIABLE
from spark_glue.state.log import StateLog
from tests.support.disk import bytes_in_files, files_on_disk
from tests.support.spark_events import START_MS, events
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import SPEC, frame_plan_for


def test_the_zone_in_which_times_are_read_goes_along():
    handle, now = FakeHandle(), Divided(8, 3)

    def processor(zone: str | None) -> RescalingProcessor:
        frame_plan = frame_plan_for(events(0, 10), time_zone=zone)
        return RescalingProcessor(frame_plan, "EventTime", Divided(4, 2), now, None)

    berlin = processor("Europe/Berlin")
    berlin.init(handle)
    handle.key = RECORD_ID
    list(berlin.handleInputRows((RECORD_ID,), iter(()), TimerValues(0, 0)))
    with pytest.raises(StateError, match=r"times are read in 'Europe/Berlin', and .* is 'UTC' now"):
        StateLog(handle, processor("UTC")._identity(now)).sign()


@pytest.mark.parametrize("held", [False, True])
def test_a_share_knows_what_is_over(held, tmp_path, monkeypatch):
    """A longer lateness, which comes later, brings none of its windows back. held: whether it has rows, and was visited
    long before the watermark."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    rows, now = events(0, 10, start_ms=START_MS, span_ms=1_000), Divided(4, 2)
    handle, watermark = FakeHandle(), START_MS + 600_000

    def processor(spec=SPEC, start_ms: int | None = None) -> RescalingProcessor:
        frame_plan = frame_plan_for(rows, spec, start_ms=start_ms)
        made = RescalingProcessor(frame_plan, "EventTime", Divided(4, 3), now, None)
        made.init(handle)
        return made

    rescaling = processor(start_ms=watermark)
    before = open_replica(frame_plan_for(rows).plan)
    if held:
        before.process(events(1, 200, start_ms=watermark + 600_000))
        before.snapshot()
    for share, key in enumerate(ids(3).tolist()):
        handle.key = key
        parts = [(group, part) for group, part in before.parts(4) if group % 2 == share]
        visit = (
            pa.Table.from_batches(cut(parts)) if parts else pa.Table.from_pylist([dict.fromkeys(STATE.names)], STATE)
        )
        found = rescaling.handleInputRows((key,), iter([visit.to_pandas()]), TimerValues(0, 0))
        assert list(found) == []
    longer = processor(SPEC.allowed_lateness("1 hour"))
    for share, key in enumerate(ids(3).tolist()):
        handle.key = key
        opened = longer._states.open(share)
        assert opened.how == ("loaded" if share < now.shares else "new")
        opened.stream.advance_watermark(watermark)
        opened.stream.process(rows)
        assert opened.stream.metrics.num_late_records_dropped == (rows.num_rows if share < now.shares else 0)


def test_nothing_is_left_on_the_disk_and_nothing_is_warned_of(tmp_path, monkeypatch, caplog):
    """The query that goes on is another one, with another id."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "shelves"))
    monkeypatch.setattr(folders, "_said", set())
    monkeypatch.setattr(spilled, "_tried", "")
    handle, now = FakeHandle(), Divided(4, 2)
    frame_plan = frame_plan_for(events(0, 10))
    stream = open_replica(frame_plan.plan)
    stream.process(events(1, 50_000))
    stream.snapshot()
    parts = [(group, part) for group, part in stream.parts(now.key_groups) if group % now.shares == 0]
    with files_on_disk() as disk:
        monkeypatch.setenv(spilled.FOLDER_VARIABLE, str(disk))
        before = bytes_in_files()
        processor = RescalingProcessor(frame_plan, "EventTime", Divided(4, 1), now, None)
        processor.init(handle)
        handle.key = share = int(ids(now.shares)[0])
        rows = pa.Table.from_batches(cut(parts)).to_pandas()
        list(processor.handleInputRows((share,), iter([rows]), TimerValues(0, 0)))
        assert processor._states.open(0).how == "loaded"  # it has been stored
        assert bytes_in_files() == before
    use_files(None)
    assert not list((tmp_path / "shelves").rglob("*"))
    assert caplog.records == []
