"""Text and lists that are too long for one batch go into several: the same rows in the same order, on each operator."""

import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.accumulators.exchange import owned_sizes
from fastwin.core.rows.rowstore import RowStore

WINDOWS: dict[str, Any] = {
    "aligned": fw.TumblingEventTimeWindows.of(100),
    "shared": fw.SlidingEventTimeWindows.of(100, 40),
    "session": fw.EventTimeSessionWindows.with_gap(3),
    "general": fw.TumblingEventTimeWindows.of(100),
    "filling": fw.TumblingEventTimeWindows.of(100),
    "several": {"short": fw.TumblingEventTimeWindows.of(100), "long": fw.TumblingEventTimeWindows.of(300)},
}


def spec_of(name: str, coalesce: bool) -> fw.WindowSpec:
    spec, fill = fw.key_by("k").event_time("ts", unit="ms"), {"fill": "empty", "longest_gap": "1 s"}
    named = WINDOWS[name]
    spec = spec.windows(**named) if name == "several" else spec.window(named, **(fill if name == "filling" else {}))
    if name == "general":
        spec = spec.trigger(fw.any_of(fw.EventTimeTrigger(), fw.CountTrigger(40)))
    spec = spec.allowed_lateness(200, coalesce=coalesce)
    return spec.aggregate(
        n=fw.Count(), last=fw.Last("text"), all=fw.Collect("text"), best=fw.TopK("text", 3), s=fw.Sum("v")
    )


def table(seed: int, n: int = 600) -> pa.Table:
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "k": dice.integers(0, 9, n),
            "ts": seed * 150 + np.sort(dice.integers(0, 400, n)),
            "text": pa.array(["ab" * int(i % 7) for i in dice.integers(0, 99, n)], mask=dice.random(n) < 0.1),
            "v": dice.integers(0, 99, n),
        }
    )


def played(spec: fw.WindowSpec) -> list[pa.Table]:
    """The results of each call of a stream, and of a run."""
    stream, found = spec.open(), []
    for seed in range(3):
        found.append(stream.process(table(seed)).main)
        found.append(stream.advance_watermark(seed * 150 + 250).main)
    found.append(stream.advance_watermark(10**6).main)
    return [*found, spec.run(pa.concat_tables([table(0), table(3)])).main]


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_long_results_go_into_several_batches(name: str, coalesce: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(name, coalesce)
    wanted = played(spec)
    monkeypatch.setattr("fastwin.operators.config._MOST_BYTES", 500)
    found = played(spec)
    assert max(part.column("all").num_chunks for part in found) > 4
    for part, whole in zip(found, wanted, strict=True):
        assert part.to_pylist() == whole.to_pylist()


def test_a_traced_stream_knows_the_causes_of_all_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[str]:
        stream = spec_of("general", False).open(trace=10_000)
        stream.process(table(0))
        stream.advance_watermark(10**6)
        return [str(stream.why(key, 50)) for key in range(9)]

    wanted = told()
    monkeypatch.setattr("fastwin.operators.config._MOST_BYTES", 500)
    assert told() == wanted


NUMBERS = {"all": fw.Collect("v"), "bins": fw.Histogram("v", [20, 50]), "s": fw.Sum("v")}
TEXTS = NUMBERS | {"words": fw.StringAgg("text"), "top": fw.TopK("text", 2), "rows": fw.Collect("row")}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("key", ["k", "coded"])  # of which sessions are found in order of time, or key by key
@pytest.mark.parametrize("aggregates", [NUMBERS, TEXTS], ids=["numbers", "texts"])
def test_sessions_of_a_table_go_by_their_bytes(
    aggregates: dict, key: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(0)
    rows = rows.append_column("coded", rows["k"].cast(pa.string()).dictionary_encode())
    rows = rows.append_column("row", pa.array(rows.select(["v", "text"]).to_pylist()))
    spec = fw.key_by(key).event_time("ts", unit="ms").window(WINDOWS["session"]).aggregate(**aggregates)
    monkeypatch.setattr("fastwin.run.threads._FEW_ROWS", 10)
    monkeypatch.setattr("fastwin.operators.session.operator.PART_ELEMENTS", 90)
    wanted = spec.run(rows, threads=threads).main
    monkeypatch.setattr("fastwin.operators.config._MOST_BYTES", 500)
    found = spec.run(rows, threads=threads).main
    assert found.equals(wanted)
    assert found["all"].num_chunks > wanted["all"].num_chunks + 4
    assert max(8 * len(chunk.flatten()) for chunk in found["all"].chunks) <= 500


@pytest.mark.parametrize("name", [*WINDOWS, "panes"])
def test_open_windows_are_looked_at_in_several_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of("aligned" if name == "panes" else name, coalesce=False)
    stream = (spec.panes() if name == "panes" else spec).open()
    stream.process(table(0))
    wanted, told = stream.inspect(), stream.why(3, 50)
    monkeypatch.setattr("fastwin.operators.config._MOST_BYTES", 500)
    found = stream.inspect()
    assert found["all"].num_chunks > 4
    assert found.drop_columns("bytes").equals(wanted.drop_columns("bytes"))  # of rows that are in order now
    assert str(stream.why(3, 50)) == str(told)


@pytest.mark.parametrize("aggregate", [fw.CountDistinct("v"), fw.Quantile("v", 0.5)], ids=str)
def test_panes_go_by_the_bytes_of_what_they_keep(aggregate: fw.Aggregate, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(WINDOWS["aligned"]).aggregate(s=aggregate).panes()

    def fired() -> pa.Table:
        stream = spec.open()
        stream.process(table(0))
        return stream.advance_watermark(10**6).main

    wanted = fired()
    assert wanted.num_rows < 60  # results of 8 bytes each would all go together
    monkeypatch.setattr("fastwin.operators.config._MOST_BYTES", 500)
    found = fired()
    assert found["s"].num_chunks > 4
    assert max(sum(len(one["state"]) for one in chunk.to_pylist()) for chunk in found["s"].chunks) < 600
    assert found.to_pylist() == wanted.to_pylist()


class Asked:
    """Accumulators that note how many bytes of results they are asked for at once, and whether the first ones stay."""

    def __init__(self, held: AccumulatorSet) -> None:
        self.held, self.most, self.kept = held, 0, False
        self.first: weakref.ref | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)

    def results(self, rows: RowStore, slots: np.ndarray) -> list[tuple]:
        self.kept |= self.first is not None and self.first() is not None
        found = self.held.results(rows, slots)
        self.most = max(self.most, sum(array.nbytes for one in found for array in one if array is not None))
        self.first = self.first or weakref.ref(found[0][0])
        return found


def asked_for(most: int, aggregate: fw.Aggregate, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Returns what was asked for the results of 40 rows, of 50 elements each: in parts they are the same as at once."""
    spec = fw.key_by("k").event_time("ts", unit="ms").window(WINDOWS["aligned"]).aggregate(a=aggregate)
    config = fw.plan(spec, table(0).schema).config
    asked = Asked(config.new_accumulators())
    rows, numbers = asked.new_rows(), np.arange(2_000, dtype=np.int64)
    slots = rows.fresh(np.arange(40, dtype=np.int32), np.zeros(40, np.int64))
    asked.add_rows(rows, np.repeat(slots, 50), [(numbers, None)] * asked.columns)
    (wanted,) = config.values_of(asked.held, rows, slots)
    monkeypatch.setattr("fastwin.operators.config._MOST_BYTES", most)
    parts = list(config.values_in_parts(asked, rows, slots))
    assert len(parts) > 4
    assert pa.concat_arrays([column for _, (column,) in parts]).equals(wanted)
    return asked


def test_no_more_results_are_made_than_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_for(5_000, fw.Collect("v"), monkeypatch).most <= 5_000


def test_results_that_are_too_long_are_let_go_before_others_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not asked_for(50, fw.Sum("v"), monkeypatch).kept


def test_blocks_are_measured_where_there_are_some() -> None:
    spec = fw.key_by("k").event_time("ts", unit="ms").window(WINDOWS["aligned"]).aggregate(a=fw.Collect("v"))
    accumulators = fw.plan(spec, table(0).schema).config.new_accumulators()
    rows = accumulators.new_rows()
    slots = rows.fresh(np.arange(2, dtype=np.int32), np.zeros(2, np.int64))
    accumulators.add_rows(rows, slots[:1], [(np.arange(1, dtype=np.int64), None)] * accumulators.columns)
    (cell,) = rows.owned_cells
    sizes = owned_sizes(rows, slots, [cell])
    assert sizes[0] >= 8 > sizes[1] == 0
    assert owned_sizes(rows, slots, []).tolist() == [0, 0]
    with pytest.raises(IndexError, match="cells: 0 owns no blocks"):
        owned_sizes(rows, slots, [0])
    with pytest.raises(IndexError, match="slots"):
        owned_sizes(rows, np.array([7], np.int32), [cell])
