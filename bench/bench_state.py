"""State: snapshot, delta and restore of a stream, beside a pickled dict and a plain Arrow file of the same rows."""

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
from bench.events import EPOCH_MS
from bench.peers import WINDOW_COLUMNS, canonical
from bench.race import Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin.run.stream import open_plan

WORKS = Works()
PEERS = ("pickled dict", "Arrow IPC")
MINUTE = 60_000
_ROWS = canonical(WINDOW_COLUMNS)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class _State:
    """One row for each of n (key, window), ten windows a key."""

    def __init__(self, n: int) -> None:
        self.n = n
        keys = np.repeat(np.arange(n // 10, dtype=np.int64) * 7_919, 10)
        times = EPOCH_MS + np.tile(np.arange(10, dtype=np.int64), n // 10) * MINUTE
        values = np.random.default_rng(10).integers(-1_000, 1_000, len(keys))
        order = np.random.default_rng(11).permutation(len(keys))
        columns = {"key": keys[order], "ts": times[order], "value": values[order]}
        self.events = pa.table(columns)
        spec = fw.key_by("key").event_time("ts").window(fw.TumblingEventTimeWindows.of(MINUTE))
        spec = spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))
        self.plan = fw.plan(spec, self.events.schema)
        ones = np.ones(len(keys), dtype=np.int64)
        self.rows = pa.table(
            {"key": columns["key"], "start": columns["ts"], "n": ones}
            | dict.fromkeys(("s", "lo", "hi"), columns["value"])
        )
        where = zip(columns["key"].tolist(), columns["ts"].tolist(), strict=True)
        self.dict = {at: [1, value, value, value] for at, value in zip(where, columns["value"].tolist(), strict=True)}
        self.changes = n // 100

    def stream(self) -> fw.Stream:
        stream = open_plan(self.plan)
        stream.process(self.events)
        return stream

    def changed(self) -> tuple[fw.Stream, bytes]:
        """A stream in which one row in a hundred has changed since it was saved, and what was saved."""
        stream = self.stream()
        saved = stream.snapshot()
        stream.process(self.events.slice(0, self.changes))
        return stream, saved

    def saved(self, *chunks: bytes) -> pa.Table:
        """The rows of a snapshot and the deltas after it."""
        stream = open_plan(self.plan)
        stream.restore(list(chunks))
        return _ROWS(stream.advance_watermark(fw.MAX_TIMESTAMP).main)


def _of_dict(blob: bytes) -> pa.Table:
    found = pickle.loads(blob)
    keys, starts = zip(*found, strict=True)
    return _ROWS(pa.table([*map(pa.array, (keys, starts, *zip(*found.values(), strict=True)))], names=WINDOW_COLUMNS))


def _of_arrow(blob: pa.Buffer) -> pa.Table:
    return _ROWS(pa.ipc.open_stream(blob).read_all().rename_columns(WINDOW_COLUMNS))


def _write_arrow(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _size(blob: Any) -> dict[str, int]:
    return {"bytes": len(blob)}


@WORKS.add("snapshot", "row", PEERS)
def snapshot(scale: Scale) -> Entry:
    state = _State(scale.items)
    contenders = {
        "fastwin": Contender(fw.Stream.snapshot, lambda: (state.stream(),), state.saved, _size),
        "pickled dict": Contender(lambda: pickle.dumps(state.dict, protocol=5), answer=_of_dict, notes=_size),
        "Arrow IPC": Contender(lambda: _write_arrow(state.rows), answer=_of_arrow, notes=_size),
    }
    return Entry(f"snapshot of {amount(state.n)} rows", state.n, contenders)


@WORKS.add("delta", "row", PEERS)
def delta(scale: Scale) -> Entry:
    """Rows that had their event once more since the state was saved: peers write them as they are then."""
    state = _State(scale.items)
    changed = state.changes
    some = state.rows.slice(0, changed)
    for name in ("n", "s"):
        place = some.schema.get_field_index(name)
        some = some.set_column(place, name, pc.multiply(some[name], 2))
    part = {at: [2, 2 * total, lo, hi] for at, (_, total, lo, hi) in list(state.dict.items())[:changed]}

    def ours(stream: fw.Stream, saved: bytes) -> tuple[bytes, bytes]:
        return saved, stream.delta()

    def read(found: tuple[bytes, bytes]) -> pa.Table:
        rows = state.saved(*found)
        return rows.filter(pc.equal(rows["n"], 2)).combine_chunks()

    contenders = {
        "fastwin": Contender(ours, state.changed, read, lambda found: _size(found[1])),
        "pickled dict": Contender(lambda: pickle.dumps(part, protocol=5), answer=_of_dict, notes=_size),
        "Arrow IPC": Contender(lambda: _write_arrow(some), answer=_of_arrow, notes=_size),
    }
    return Entry(f"delta of {amount(changed)} rows, of {amount(state.n)}", changed, contenders)


@WORKS.add("restore", "row", PEERS)
def restore(scale: Scale) -> Entry:
    state = _State(scale.items)
    saved, pickled, written = state.stream().snapshot(), pickle.dumps(state.dict, protocol=5), _write_arrow(state.rows)

    def ours(stream: fw.Stream) -> int:
        stream.restore([saved])
        return stream.metrics.state_rows

    contenders = {
        "fastwin": Contender(ours, setup=lambda: (open_plan(state.plan),), answer=int),
        "pickled dict": Contender(lambda: pickle.loads(pickled), answer=len),
        "Arrow IPC": Contender(lambda: pa.ipc.open_stream(written).read_all(), answer=len),
    }
    return Entry(f"restore of {amount(state.n)} rows", state.n, contenders)


@WORKS.add("restore-deltas", "row", PEERS)
def restore_deltas(scale: Scale) -> Entry:
    """A snapshot and ten deltas, of a hundredth of the rows each, as Spark's tasks find them."""
    state = _State(scale.items)
    changed, stream = state.changes, state.stream()
    chunks = [stream.snapshot()]
    for at in range(0, 10 * changed, changed):
        stream.process(state.events.slice(at, changed))
        chunks.append(stream.delta())
    items = list(state.dict.items())
    pickled = [pickle.dumps(dict(part), protocol=5) for part in _parts(items, changed)]
    written = [_write_arrow(part) for part in _parts(state.rows, changed)]

    def ours(stream: fw.Stream) -> int:
        stream.restore(chunks)
        return stream.metrics.state_rows

    def unpickled() -> dict:
        found: dict = {}
        for part in pickled:
            found.update(pickle.loads(part))
        return found

    def read() -> pa.Table:
        """All rows of all parts: to put them together would cost more."""
        return pa.concat_tables(pa.ipc.open_stream(part).read_all() for part in written)

    contenders = {
        "fastwin": Contender(ours, setup=lambda: (open_plan(state.plan),), answer=int),
        "pickled dict": Contender(unpickled, answer=len),
        "Arrow IPC": Contender(read, answer=lambda found: found.group_by(["key", "start"]).aggregate([]).num_rows),
    }
    return Entry(f"restore of {amount(state.n)} rows and ten deltas of {amount(changed)}", state.n, contenders)


def _parts(rows: Any, changed: int) -> list[Any]:
    return [rows, *(rows[at : at + changed] for at in range(0, 10 * changed, changed))]


@WORKS.parametrize
def test_state(race, work, contender):
    race(work, contender)
