"""Windows that keep rows are saved and restored whatever the columns' types are."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw

_DAY, _TIME = dt.datetime(2020, 1, 2), dt.time(1, 2, 3)
_UTC = _DAY.replace(tzinfo=dt.UTC)
_TEXTS = pa.dictionary(pa.int8(), pa.string())
VALUES: list[tuple[pa.DataType, Any]] = [
    (pa.bool_(), True),
    (pa.int8(), 1),
    (pa.uint64(), 2**64 - 1),
    (pa.float16(), 1.5),
    (pa.decimal128(20, 3), Decimal("1.234")),
    (pa.decimal256(50, 3), Decimal("1.234")),
    (pa.date32(), _DAY.date()),
    (pa.date64(), _DAY.date()),
    (pa.time32("ms"), _TIME),
    (pa.time64("ns"), _TIME),
    (pa.timestamp("s"), _DAY),
    (pa.timestamp("ns", "Europe/Berlin"), _UTC),
    (pa.duration("ns"), dt.timedelta(seconds=3)),
    (pa.month_day_nano_interval(), pa.MonthDayNano([1, 2, 3])),
    (pa.binary(), b"x"),
    (pa.binary(2), b"xx"),
    (pa.binary_view(), b"x"),
    (pa.large_binary(), b"x"),
    (pa.large_string(), "x"),
    (pa.string_view(), "x"),
    (pa.list_(pa.int64()), [1, None]),
    (pa.list_(pa.int64(), 2), [1, 2]),
    (pa.large_list(pa.string()), ["a"]),
    (pa.list_view(pa.int64()), [1]),
    (pa.list_(pa.timestamp("us", "Asia/Tokyo")), [_UTC]),
    (pa.list_(pa.timestamp("ns")), [_DAY]),
    (pa.list_(pa.uint64()), [2**64 - 1]),
    (pa.struct([("a", pa.int64()), ("b", pa.timestamp("ns"))]), {"a": 1, "b": _DAY}),
    (pa.struct([]), {}),
    (pa.map_(pa.string(), pa.struct([("a", pa.int32())])), [("k", {"a": 1})]),
    (_TEXTS, "x"),
    (pa.dictionary(pa.int32(), pa.int64()), 5),
    (pa.null(), None),
    (pa.uuid(), b"0" * 16),
]


class Told(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (repr([element.c for element in elements]),)


def _array(kind: pa.DataType, value: Any) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array([value, None], kind.storage_type))
    return pa.array([value, None], kind)


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
@pytest.mark.parametrize("evicting", [False, True])
def test_kept_rows_come_back_from_a_snapshot(kind: pa.DataType, value: Any, evicting: bool) -> None:
    base = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    spec = (base.evictor(fw.CountEvictor.of(9)) if evicting else base).process(Told(), output="told string")
    table = pa.table({"k": [1, 1], "ts": [1, 2], "c": _array(kind, value)})
    stream = spec.open(schema=table.schema)
    stream.process(table)
    chunks = [stream.snapshot()]
    stream.process(table)
    chunks.append(stream.delta())
    other = spec.open(schema=table.schema)
    other.restore(chunks)
    told = stream.advance_watermark(50).main["told"].to_pylist()
    assert told[0].count("None") >= 2
    assert other.advance_watermark(50).main["told"].to_pylist() == told
