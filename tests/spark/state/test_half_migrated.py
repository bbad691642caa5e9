"""Shares of which ``migrate="wider types"`` has reached some: what reads all of them together refuses them, in words."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from fastwin.run.replica import open_replica
from fastwin.state.chunks import decode, owner
from spark_glue import export, inspection
from spark_glue.plan.keygroups import ids
from spark_glue.stages.history import begun_from
from spark_glue.stages.rescaling import Divided, divided_anew
from spark_glue.state.book import DeltaLog, Entry
from spark_glue.state.log import StoredHead, token_of
from spark_glue.state.savepoint import STATE_FOLDER, Savepoint
from spark_glue.state.stored import NO_CHUNK, Checkpoint, plan_of
from tests.support.spark_jobs import SPEC, frame_plan_for

NARROW = pa.schema([("k", pa.int32()), ("ts", pa.timestamp("ms", "UTC")), ("v", pa.int32())])
WIDE = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("ms", "UTC")), ("v", pa.int64())])
TYPES = r"\(the keys of int32 and int64; aggregate s=Sum\(.*'v'.*\) of int32 and int64\)"
SAYS = rf"two shares have state of different types {TYPES}; a share that no micro-batch has visited since the spec ch"
PLACES = ids(2).tolist()


def delta(schema: pa.Schema, rows: int = 1) -> bytes:
    """The state of a share. rows: how many it has; 0: they are gone."""
    stream = open_replica(fw.plan(SPEC, schema, coalesce=True))
    stream.process(pa.table([[key + 1 for key in range(3)], [1, 2, 3], [4, 5, 6]], schema=schema))
    if not rows:
        stream.advance_watermark(fw.MAX_TIMESTAMP - 1)
    return stream.delta()


class Stored:
    """The checkpoint of a query with two shares, whose deltas lie in the heads."""

    is_small, operators, time_zone, spark = False, 1, None, None
    a_delta, delta_of = Checkpoint.a_delta, Checkpoint.delta_of

    def __init__(self, *deltas: bytes) -> None:
        self.deltas = deltas
        entries = [Entry.of(0, 1, len(one), token_of(one), decode(one, owner(one)).meta) for one in deltas]
        logs = [DeltaLog().append(entry, 0, 2, None)[0] for entry in entries]
        self.heads = {
            place: StoredHead(log, 8, 2, {0: one}) for place, log, one in zip(PLACES, logs, deltas, strict=True)
        }

    def shares(self):
        return iter([(number, [one]) for number, one in enumerate(self.deltas)])

    def last_batch(self) -> int:
        return 7

    def progress(self) -> None:
        return None

    def pieces(self, groups=None) -> "Stored":
        return self

    def mapInArrow(self, function, struct):  # noqa: N802
        """Runs a function over the rows of both shares at once, as Spark would when the frame is read."""
        rows = {"key_group": PLACES, "chunk": [NO_CHUNK] * 2, "data": [b""] * 2}
        return lambda: list(function(iter([pa.RecordBatch.from_pydict(rows)])))


def exported(monkeypatch, folder, *deltas: bytes) -> int:
    monkeypatch.setattr(export, "Checkpoint", lambda *_: Stored(*deltas))
    monkeypatch.setattr(export, "stopped_checkpoint", lambda checkpoint: checkpoint)
    return spark_glue.export_state("checkpoint", SPEC, folder)


def test_a_half_migrated_query_is_not_exported(tmp_path, monkeypatch):
    with pytest.raises(StateError, match=rf"^export_state: {SAYS}"):
        exported(monkeypatch, tmp_path / "saved", delta(NARROW), delta(WIDE))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("turn", [1, -1], ids=["first", "last"])
def test_a_share_without_rows_is_of_no_type(tmp_path, monkeypatch, turn):
    assert exported(monkeypatch, tmp_path / "saved", *[delta(NARROW, rows=0), delta(WIDE)][::turn]) == 3
    plan = frame_plan_for(WIDE.empty_table()).plan
    assert Savepoint.read(tmp_path / "saved").types == plan.config.state.to_json()
    stream = open_replica(plan)
    stream.gather(pq.read_table(tmp_path / "saved" / STATE_FOLDER)["part"].to_pylist())
    assert stream.metrics.state_rows == 3


def inspected(monkeypatch, stored: Stored, shares=None) -> pa.Table:
    monkeypatch.setattr(inspection, "Checkpoint", lambda *_: stored)
    monkeypatch.setattr(inspection, "is_case_sensitive", lambda _: True)
    return pa.Table.from_batches(spark_glue.inspect("checkpoint", SPEC, shares=shares)())


def divided(stored: Stored) -> list[pa.RecordBatch]:
    rows = pa.RecordBatch.from_pydict({"key_group": PLACES, "chunk": [NO_CHUNK] * 2, "data": [b""] * 2})
    types = plan_of(SPEC, stored.a_delta).config.state
    return list(divided_anew(SPEC, types, stored.heads, Divided(8, 3), iter([rows])))


def test_a_half_migrated_query_is_neither_inspected_nor_rescaled(monkeypatch):
    stored = Stored(delta(WIDE), delta(NARROW))
    with pytest.raises(StateError, match=rf"^inspect: {SAYS}"):
        inspected(monkeypatch, stored)
    with pytest.raises(StateError, match=rf"^rescale: {SAYS}"):
        divided(stored)
    assert divided(Stored(*[delta(NARROW)] * 2))


@pytest.mark.parametrize("turn", [1, -1], ids=["first", "last"])
@pytest.mark.parametrize("schemas", [(NARROW, WIDE), (WIDE, NARROW)], ids=["narrow", "wide"])
def test_a_share_without_rows_hinders_neither_inspect_nor_rescale(monkeypatch, schemas, turn):
    gone, there = schemas
    stored = Stored(*[delta(gone, rows=0), delta(there)][::turn])
    found = inspected(monkeypatch, stored)
    assert found.num_rows == 3 and found.schema.field("k").type == there.field("k").type
    assert divided(stored)


@pytest.mark.parametrize(("share", "schema"), [(0, WIDE), (1, NARROW)])
def test_the_types_of_a_share_that_is_not_read_do_not_count(monkeypatch, share, schema):
    found = inspected(monkeypatch, Stored(delta(WIDE), delta(NARROW)), [share])
    assert found.num_rows == 3 and found.schema.field("k").type == schema.field("k").type


def test_a_stream_of_wider_types_than_were_saved_is_refused_by_the_driver(tmp_path, monkeypatch):
    exported(monkeypatch, tmp_path / "saved", delta(NARROW), delta(NARROW))
    plans = frame_plan_for(NARROW.empty_table()), frame_plan_for(WIDE.empty_table())
    assert plans[0].plan.fingerprint == plans[1].plan.fingerprint
    with pytest.raises(SpecError, match=rf"history: .* with other types than the stream has now {TYPES}; cast"):
        begun_from(None, tmp_path / "saved", plans[1], lambda _: plans[1], 0)
