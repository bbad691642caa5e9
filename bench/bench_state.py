"""State: snapshot, delta and restore of a stream, beside a pickled dict and a plain Arrow file of the same rows."""

import pickle
from typing import Any

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench.events import EPOCH_MS
from bench.race import Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin.run.stream import open_plan

WORKS = Works()
PEERS = ("pickled dict", "Arrow IPC")
MINUTE = 60_000
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

    def stream(self) -> fw.Stream:
        stream = open_plan(self.plan)
        stream.process(self.events)
        return stream

    def changed(self) -> fw.Stream:
        """A stream that has been saved, and in which one row in a hundred has changed since."""
        stream = self.stream()
        stream.snapshot()
        stream.process(self.events.slice(0, self.n // 100))
        return stream


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
        "fastwin": Contender(fw.Stream.snapshot, setup=lambda: (state.stream(),), notes=_size),
        "pickled dict": Contender(lambda: pickle.dumps(state.dict, protocol=5), notes=_size),
        "Arrow IPC": Contender(lambda: _write_arrow(state.rows), notes=_size),
    }
    return Entry(f"snapshot of {amount(state.n)} rows", state.n, contenders)


@WORKS.add("delta", "row", PEERS)
def delta(scale: Scale) -> Entry:
    state = _State(scale.items)
    changed = state.n // 100
    some = state.rows.slice(0, changed)
    part = dict(list(state.dict.items())[:changed])
    contenders = {
        "fastwin": Contender(fw.Stream.delta, setup=lambda: (state.changed(),), notes=_size),
        "pickled dict": Contender(lambda: pickle.dumps(part, protocol=5), notes=_size),
        "Arrow IPC": Contender(lambda: _write_arrow(some), notes=_size),
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
    changed, stream = state.n // 100, state.stream()
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
        "Arrow IPC": Contender(read),
    }
    return Entry(f"restore of {amount(state.n)} rows and ten deltas of {amount(changed)}", state.n, contenders)


def _parts(rows: Any, changed: int) -> list[Any]:
    return [rows, *(rows[at : at + changed] for at in range(0, 10 * changed, changed))]


@WORKS.parametrize
def test_state(race, work, contender):
    race(work, contender)
