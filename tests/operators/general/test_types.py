"""The general operator with columns of dictionary and view types, and what restore() takes of it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError, StateError

TEXTS = ["a", "b", None, "a"]
BASE = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
COUNTED = BASE.trigger(fw.CountTrigger.of(3)).aggregate(n=fw.Count())


class Joined(fw.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield {"texts": [element.text for element in elements]}


SPECS = {
    "process": BASE.process(Joined(), output="texts array<string>"),
    "evictor": BASE.evictor(fw.CountEvictor.of(3)).aggregate(n=fw.Count("text")),
    "reduce": BASE.reduce(lambda a, b: b, output="text string"),
    "coalesced": BASE.allowed_lateness(100, coalesce=True).process(Joined(), output="texts array<string>"),
}
KINDS = [
    pa.string_view(),
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int64(), pa.string()),
]


def table(kind: pa.DataType) -> pa.Table:
    texts = pa.array(TEXTS, pa.string())
    texts = texts.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else texts.cast(kind)
    return pa.table({"k": ["x", "y", "x", "x"], "ts": pa.array([1, 2, 3, 4], pa.int64()), "text": texts})


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_column_types_come_to_the_same_as_text_also_across_a_restore(kind: pa.DataType, name: str) -> None:
    spec = SPECS[name]
    rows = table(kind)
    expected = spec.open()
    for _ in range(2):
        expected.process(table(pa.string()))
    first = spec.open()
    first.process(rows)
    chunks = [first.snapshot()]
    first.process(rows)
    chunks.append(first.delta())
    second = spec.open()
    second.restore(chunks)
    second._check_invariants()
    texts = [stream.advance_watermark(20).main.sort_by("k").to_pylist() for stream in (expected, first, second)]
    assert texts[0] == texts[1] == texts[2]
    late = [stream.process(table(pa.string())).main.sort_by("k").to_pylist() for stream in (expected, first, second)]
    assert late[0] == late[1] == late[2]


def test_only_the_general_operator_forgets_the_watermark() -> None:
    for spec, forgets in ((COUNTED, True), (BASE.aggregate(n=fw.Count()), False)):
        stream = spec.open()
        stream.process(table(pa.string()))
        stream.advance_watermark(5)
        restored = spec.open()
        if forgets:
            restored.restore(stream.snapshot(), forget_watermark=True)
            assert restored.watermark == -(2**63)
        else:
            with pytest.raises(SpecError, match="the aligned operator cannot forget the watermark"):
                restored.restore(stream.snapshot(), forget_watermark=True)


@pytest.mark.parametrize("chunks", [5, "text", [5], [], b"FWST"])
def test_restore_of_what_is_no_state(chunks: object) -> None:
    with pytest.raises(StateError, match=r"restore: |state: "):
        COUNTED.open().restore(chunks)


def test_input_without_columns() -> None:
    spec = fw.key_by().window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(1)).aggregate(n=fw.Count())
    with pytest.raises(SpecError, match="input: it has no columns"):
        spec.run(pa.table({}))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fw.CumulativeEventTimeWindows("1 day", 5), "max_size must be an int of milliseconds, got '1 day'"),
        (lambda: fw.CumulativeEventTimeWindows(2**60, 2**60), "max_size must be within 9007199254740992 ms"),
        (lambda: fw.TumblingProcessingTimeWindows(1.5), "size must be an int of milliseconds, got 1.5"),
        (lambda: fw.ProcessingTimeSessionWindows(True), "gap must be an int of milliseconds, got True; .*with_gap"),
    ],
)
def test_durations_not_by_of(make: Any, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        make()


def test_more_aggregates_than_a_row_has_marks() -> None:
    with pytest.raises(SpecError, match="at most 63 in one spec, got 64"):
        BASE.aggregate(**{f"n{i}": fw.Count() for i in range(64)})
