"""Columns of every Arrow type in every place: each works, or is refused when planned, and the stream can be used on."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as types
import pytest

import fastwin as fw
from tests.support.types import ALL_TYPES, column

T, GAP = fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(10)
BASE = fw.key_by("k").event_time("t").bad_rows("divert").side_output_late_data()


class Elements(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (len([tuple(element) for element in elements]),)


class Latest(fw.ReduceFunction):
    def reduce(self, a, b):
        return b


PAYLOAD = {
    "aligned": BASE.window(T).aggregate(n=fw.Count()),
    "sessions": BASE.window(GAP).aggregate(n=fw.Count()),
    "counted": BASE.window(T).trigger(fw.CountTrigger.of(2)).aggregate(n=fw.Count()),
    "kept": BASE.window(T).process(Elements(), output="n bigint"),
    "evicted": BASE.window(T).evictor(fw.CountEvictor.of(5)).aggregate(n=fw.Count()),
    "reduced": BASE.window(T).reduce(Latest()),
}
VALUES = {
    "count": {"n": fw.Count("v")},
    "extremes": {"lo": fw.Min("v"), "hi": fw.Max("v")},
    "picks": {"first": fw.First("v"), "last": fw.Last("v"), "least": fw.ArgMin("v", by="k")},
    "sum": {"s": fw.Sum("v"), "m": fw.Mean("v")},
    "distinct": {"uv": fw.HyperLogLog("v")},
}


def within(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types inside of a type, at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        return
    inside = [kind.value_type] if types.is_dictionary(kind) else [kind.field(at).type for at in range(kind.num_fields)]
    for one in inside:
        yield one
        yield from within(one)


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values of dictionaries and of runs."""
    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def cannot_be_carried(kind: pa.DataType) -> bool:
    """Arrow takes no rows out of it, or does not read it again."""
    inside = list(within(kind))
    return any(map(types.is_run_end_encoded, inside)) or (types.is_union(kind) and any(map(is_extension, inside)))


def cannot_be_kept(kind: pa.DataType) -> bool:
    """Nor can a column be made of its values again."""
    inside = list(within(plain(kind)))
    return cannot_be_carried(kind) or any(map(types.is_union, [kind, *inside])) or any(map(is_extension, inside))


def is_no_key(kind: pa.DataType) -> bool:
    """Its values have no order, and nothing is counted by them."""
    kind = plain(kind)
    return types.is_nested(kind) or types.is_interval(kind) or is_extension(kind)


def cannot_be_picked(kind: pa.DataType) -> bool:
    kind = plain(kind)
    wrong = (is_extension, types.is_union, types.is_list_view, types.is_large_list_view)
    lost = any(test(one) for one in (kind, *within(kind)) for test in wrong)
    return lost or cannot_be_carried(kind) or types.is_interval(kind)


def is_no_number(kind: pa.DataType) -> bool:
    kind = plain(kind)
    numbers = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    return types.is_uint64(kind) or not any(test(kind) for test in numbers)


def is_no_time(kind: pa.DataType) -> bool:
    kind = kind.value_type if types.is_run_end_encoded(kind) else kind
    return not (types.is_int64(kind) or types.is_timestamp(kind) or types.is_null(kind))


REFUSED: dict[str, Callable[[pa.DataType], bool]] = {
    "aligned": cannot_be_carried,
    "sessions": cannot_be_carried,
    "counted": cannot_be_carried,
    "kept": cannot_be_kept,
    "evicted": cannot_be_kept,
    "reduced": cannot_be_kept,
    "count": cannot_be_carried,
    "extremes": is_no_key,
    "picks": cannot_be_picked,
    "sum": is_no_number,
    "distinct": is_no_key,
}
"""Which types planning refuses in each place."""


def table(values: pa.Array, times: list[Any], **named: Any) -> pa.Table:
    return pa.table({"k": pa.array([1, 2, 1]), "t": pa.array(times, pa.int64()), "v": values, **named})


def why_refused(spec: fw.WindowSpec, batch: pa.Table) -> str | None:
    try:
        fw.plan(spec, batch.schema)
    except fw.SpecError as problem:
        return str(problem)
    return None


def used(spec: fw.WindowSpec, batches: list[pa.Table]) -> list[fw.Result] | None:
    """What comes of batches with late and bad rows, and a restore after each; None if planning refuses the first."""
    if (refused := why_refused(spec, batches[0])) is not None:
        assert any(name in refused for name in ("'v'", "'t'", "'k'"))
        with pytest.raises(fw.SpecError):
            spec.run(batches[0])
        return None
    stream, found, chunks = spec.open(), [], []
    for number, batch in enumerate(batches):
        found += [stream.process(batch), stream.process(batch[:0]), stream.advance_watermark(10 * number - 5)]
        chunks.append(stream.delta() if chunks else stream.snapshot())
        again = spec.open()
        again.restore(chunks)
        assert again.metrics.state_rows == stream.metrics.state_rows
        again._check_invariants()
        stream = again
    found += [stream.process(batches[-1]), stream.advance_watermark(fw.MAX_TIMESTAMP)]
    assert stream.metrics.state_rows == 0
    for result in found:
        for part in (result.main, result.late, result.bad):
            part.validate(full=True)
            part.combine_chunks().to_pylist()
    spec.run(pa.concat_tables(batches))
    return found


def total(found: list[fw.Result], part: str) -> int:
    return sum(getattr(result, part).num_rows for result in found)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("spec", PAYLOAD)
def test_payload(spec: str, kind: pa.DataType) -> None:
    values = column(kind)
    several = pa.chunked_array([values[:1], values[1:]])  # and chunks that are put together
    batches = [table(values, [1, 2, None]), table(several, [11, -50, 13]), table(values, [21, -50, 23])]
    found = used(PAYLOAD[spec], batches)
    assert (found is None) == REFUSED[spec](kind)
    if found is not None:
        assert total(found, "late") > 1
        assert total(found, "bad") == 1
        late = pa.concat_tables([result.late for result in found if result.late.num_rows])
        assert set(map(repr, late["v"].to_pylist())) <= set(map(repr, values.to_pylist()))


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("spec", ["aligned", "sessions", "kept"])
def test_key(spec: str, kind: pa.DataType) -> None:
    values = column(kind)
    batches = [table(values, times, k=values) for times in ([1, 2, None], [11, -50, 13], [21, -50, 23])]
    found = used(PAYLOAD[spec], batches)
    assert (found is None) == is_no_key(kind)
    if found is not None:
        main = pa.concat_tables([result.main for result in found if result.main.num_rows])
        assert set(map(repr, main["k"].to_pylist())) <= set(map(repr, values.to_pylist()))


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("aggregates", VALUES)
def test_value(aggregates: str, kind: pa.DataType) -> None:
    values = column(kind)
    batches = [table(values, times) for times in ([1, 2, None], [11, -50, 13], [21, -50, 23])]
    found = used(BASE.window(GAP if aggregates == "picks" else T).aggregate(**VALUES[aggregates]), batches)
    assert (found is None) == REFUSED[aggregates](kind)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("spec", ["aligned", "kept"])
def test_time(spec: str, kind: pa.DataType) -> None:
    values = column(kind)
    named = {"t": values}
    found = used(PAYLOAD[spec], [table(pa.array([1, 2, 3]), [1, 2, 3], **named)] * 2)
    assert (found is None) == is_no_time(kind)


INNER = pa.array(["a", "b"]).dictionary_encode()
LOST = {
    "of an extension type": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())),
    "of a dictionary": INNER,
}


@pytest.mark.parametrize("spec", ["aligned", "reduced"])
@pytest.mark.parametrize("name", LOST)
def test_dictionaries_that_arrow_loses_work_and_are_restored(name: str, spec: str) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), LOST[name])
    assert used(PAYLOAD[spec], [table(values, [1, 2, None]), table(values, [11, -50, 13])]) is not None


def test_a_dictionary_of_dictionaries_is_a_key() -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), INNER)
    main = PAYLOAD["aligned"].run(table(keys, [1, 2, 3], k=keys)).main
    assert dict(zip(main["k"].to_pylist(), main["n"].to_pylist(), strict=True)) == {"a": 1, "b": 2}
