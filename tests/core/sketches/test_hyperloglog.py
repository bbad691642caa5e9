"""HyperLogLog against a real Redis server: registers, strings and estimates."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

import fastwin as fw
from fastwin import hyperloglog
from fastwin.columns.values import hashes
from fastwin.core.sketches.hyperloglog import Sketch
from fastwin.errors import SketchError
from tests.support.redis_server import RedisServer

KEY = "sketch"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    with redis.Redis.from_url(server.url) as client:
        yield client
    server.stop()


def pfadd(server: redis.Redis, values: list, key: str = KEY) -> int:
    """The count after the server has taken the values."""
    server.delete(key)
    pipe = server.pipeline(transaction=False)
    for at in range(0, len(values), 10_000):
        pipe.pfadd(key, *values[at : at + 10_000])
    pipe.execute()
    return server.pfcount(key)


def theirs(server: redis.Redis, key: str = KEY) -> np.ndarray:
    return hyperloglog.registers(server.get(key))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 100, 1_000, 1_500, 1_600, 3_000, 10_000, 40_000, 100_000, 1_000_000])
def test_estimate_and_registers_are_those_of_redis(server: redis.Redis, n: int) -> None:
    values = np.arange(n, dtype=np.int64) * 7 - 50
    count = pfadd(server, values.tolist())
    sketch = hyperloglog.sketch(pa.array(values))
    assert hyperloglog.estimate(sketch) == count
    if n:
        assert np.array_equal(hyperloglog.registers(sketch), theirs(server))


def test_every_count_up_to_three_thousand_is_that_of_redis(server: redis.Redis) -> None:
    texts = [f"user-{i}" for i in range(3_000)]
    server.delete(KEY)
    mine, column = Sketch(), hashes(pa.array(texts))
    pipe = server.pipeline(transaction=False)
    for text in texts:
        pipe.pfadd(KEY, text)
        pipe.pfcount(KEY)
    for i, count in enumerate(pipe.execute()[1::2]):
        mine.add_hashes(column[i : i + 1])
        assert mine.estimate() == count
        if i % 250 == 0:
            mine._check()
    assert np.array_equal(mine.registers(), theirs(server))


@pytest.mark.parametrize("n", [0, 1, 5, 700, 1_200, 5_000, 200_000])
def test_redis_takes_our_strings(server: redis.Redis, n: int) -> None:
    sketch = hyperloglog.sketch(pa.array([f"é{i}" for i in range(n)]))
    assert len(sketch) == 12_304 or len(sketch) <= 3_000
    server.set(KEY, sketch)
    assert server.pfcount(KEY) == hyperloglog.estimate(sketch)
    server.delete("merged")
    server.pfmerge("merged", KEY)
    assert np.array_equal(theirs(server, "merged"), hyperloglog.registers(sketch))
    server.pfadd(KEY, "one more")
    assert np.array_equal(
        theirs(server), hyperloglog.registers(hyperloglog.sketch(pa.array([*(f"é{i}" for i in range(n)), "one more"])))
    )


def test_dense_strings_are_those_of_redis_to_the_byte(server: redis.Redis) -> None:
    values = list(range(20_000))
    pfadd(server, values)
    server.pfadd(KEY, *range(20_000, 20_100))  # the cached count is out of date now, as in our strings
    mine = bytearray(hyperloglog.sketch(pa.array(range(20_100))))
    stored = bytearray(server.get(KEY))
    assert stored[15] & 0x80
    mine[8:16] = stored[8:16]  # what is left of the count is of no meaning
    assert mine == stored


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (pa.string(), ["a", "", "é\0", "x" * 300], ["a", "", "é\0", "x" * 300]),
        (pa.large_string(), ["a", "b"], ["a", "b"]),
        (pa.string_view(), ["a", "longer than the twelve bytes of a view"], ["a", "longer than the twelve bytes of a view"]),
        (pa.binary(), [b"\xff\0", b""], [b"\xff\0", b""]),
        (pa.binary(3), [b"abc"], [b"abc"]),
        (pa.int8(), [-128, 0, 127], [-128, 0, 127]),
        (pa.int64(), [2**63 - 1, -(2**63), 0, 10], [2**63 - 1, -(2**63), 0, 10]),
        (pa.uint64(), [2**64 - 1, 0], [2**64 - 1, 0]),
        (pa.float64(), [0.1, -1.0, 1e16, 1e-7, 2.5e300, float("inf")], [0.1, -1.0, 1e16, 1e-7, 2.5e300, float("inf")]),
        (pa.float64(), [-0.0, float("nan")], [0.0, "nan"]),
        (pa.float32(), [0.5, 0.1], [0.5, float(np.float32(0.1))]),
        (pa.bool_(), [True, False], [1, 0]),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.05")], ["1.50", "-0.05"]),
        (pa.decimal256(50, 2), [Decimal("1.50")], ["1.50"]),
        (pa.decimal128(18, 8), [Decimal("1E-8"), Decimal(0)], ["0.00000001", "0.00000000"]),
        (pa.decimal128(18, 8), [Decimal("-12E-8"), Decimal("1.5")], ["-0.00000012", "1.50000000"]),
        (pa.decimal256(60, 30), [Decimal("7E-30"), Decimal(7)], ["0." + "7".zfill(30), "7." + "0" * 30]),
        (pa.decimal128(9, 6), [Decimal("1E-6"), Decimal(0)], ["0.000001", "0.000000"]),
        (pa.decimal128(12, -3), [Decimal("12E3"), Decimal("0E3")], ["12000", "0"]),
        (pa.date32(), [dt.date(2024, 1, 31)], ["2024-01-31"]),
        (pa.date64(), [dt.date(2024, 1, 31)], ["2024-01-31"]),
        (pa.timestamp("s"), [dt.datetime(1970, 1, 2)], [86_400_000_000]),
        (pa.timestamp("ms", "Asia/Tokyo"), [dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)], [-3_600_000_000]),
        (pa.timestamp("s"), [2**62, 1 - 2**63, 9_223_372_036_854], [2**62 * 10**6, (1 - 2**63) * 10**6, 9_223_372_036_854 * 10**6]),
        (pa.duration("ms"), [2**63 - 1, -(2**60)], [(2**63 - 1) * 1_000, -(2**60) * 1_000]),
        (pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 0, 7)], [7]),
        (pa.timestamp("ns"), [1_500, -1], ["1.500", "-0.001"]),
        (pa.duration("ns"), [-1_999, 1 - 2**63, -3_000], ["-1.999", "-9223372036854775.807", -3]),
        (pa.timestamp("ns"), [5_000], [5]),
        (pa.time32("s"), [dt.time(0, 0, 1)], [1_000_000]),
        (pa.duration("ms"), [dt.timedelta(milliseconds=-3)], [-3_000]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"], ["a", "b"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_hashed_of_each_type(server: redis.Redis, kind: pa.DataType, values: list, said: list) -> None:
    pfadd(server, said)
    column = pa.array([None, *values, None], kind)
    assert np.array_equal(hyperloglog.registers(hyperloglog.sketch(column)), theirs(server))
    assert np.array_equal(hyperloglog.registers(hyperloglog.sketch(column.slice(1, len(values)))), theirs(server))


def test_nulls_in_dictionaries_are_skipped() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array(["a", None]))
    assert hyperloglog.estimate(hyperloglog.sketch(column)) == 1
    assert hyperloglog.estimate(hyperloglog.sketch(column.slice(1))) == 0
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    assert hyperloglog.estimate(hyperloglog.sketch(pa.chunked_array([empty, empty]))) == 0


def test_runs_are_taken_as_what_they_stand_for() -> None:
    plain = pa.array(["a", "a", None, "b"])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], pa.int32()), pa.array(["a", None, "b"]))
    for column, wanted in ((runs, plain), (pa.chunked_array([runs, runs]), plain), (runs.slice(2), plain.slice(2))):
        assert hyperloglog.sketch(column) == hyperloglog.sketch(wanted)


@pytest.mark.parametrize("nothing", [None, "text", 5])
def test_registers_of_no_sketch_are_refused(nothing: Any) -> None:
    with pytest.raises(SketchError, match="sketch: must be bytes, got"):
        hyperloglog.registers(nothing)


@pytest.mark.parametrize("call", [hyperloglog.estimate, hyperloglog.merge])
@pytest.mark.parametrize("nothing", [None, 5])
def test_what_is_neither_a_sketch_nor_several_is_refused(call: Callable, nothing: Any) -> None:
    with pytest.raises(SketchError, match=f"sketch: must be bytes or several, got {type(nothing).__name__}"):
        call(nothing)


def test_values_without_text_are_refused() -> None:
    with pytest.raises(fw.SpecError, match=r"values: must be an Arrow array of numbers.*, got list<"):
        hyperloglog.sketch(pa.array([[1]]))
    with pytest.raises(fw.SpecError, match="got list"):
        hyperloglog.sketch([1])
    with pytest.raises(fw.SpecError, match=r"HyperLogLog\('x'\): takes a column of numbers, .* but column 'x' is list"):
        fw.HyperLogLog("x").inputs(pa.list_(pa.int8()))
    with pytest.raises(fw.SpecError, match="HyperLogLog: output must be 'estimate' or 'sketch', got 'count'"):
        fw.HyperLogLog("x", output="count")


@pytest.mark.parametrize("sizes", [(10, 20), (10, 5_000), (5_000, 10), (5_000, 6_000), (1_400, 1_400)])
def test_merging_is_that_of_redis(server: redis.Redis, sizes: tuple[int, int]) -> None:
    parts = [[f"{i * (1 + k)}" for i in range(n)] for k, n in enumerate(sizes)]
    for k, part in enumerate(parts):
        pfadd(server, part, f"part{k}")
    server.delete(KEY)
    server.pfmerge(KEY, "part0", "part1")
    sketches = [hyperloglog.sketch(pa.array(part)) for part in parts]
    merged = hyperloglog.merge(sketches)
    assert np.array_equal(hyperloglog.registers(merged), theirs(server))
    assert hyperloglog.estimate(sketches) == hyperloglog.estimate(merged) == server.pfcount("part0", "part1")
    # Strings that Redis wrote are read as well.
    assert hyperloglog.merge([server.get("part0"), None, server.get("part1")]) == merged


def test_values_beyond_thirty_two_need_a_dense_string(server: redis.Redis) -> None:
    found = Sketch()
    found.add_hashes(np.array([5 | 1 << (14 + 40)], dtype=np.int64))
    assert found.registers()[5] == 41
    assert len(found.to_bytes()) == 12_304
    server.set(KEY, found.to_bytes())
    assert server.pfcount(KEY) == found.estimate() == hyperloglog.estimate(found.to_bytes())


def test_the_rarest_hashes_fill_a_register() -> None:
    found = Sketch()
    found.add_hashes(np.array([3, -1, 16_383], dtype=np.int64))  # all 50 bits unset; all set; unset
    registers = found.registers()
    assert registers[3] == registers[16_383] == 51  # the last one over 1
    assert np.count_nonzero(registers) == 2
    other = Sketch()
    other.merge_string(found.to_bytes())
    assert np.array_equal(other.registers(), registers)


def test_no_sketches_make_an_empty_one(server: redis.Redis) -> None:
    assert hyperloglog.estimate([]) == hyperloglog.estimate(hyperloglog.merge([])) == 0
    server.set(KEY, hyperloglog.merge([None]))
    assert server.pfcount(KEY) == 0


SPARSE = hyperloglog.sketch(pa.array(range(50)))
DENSE = hyperloglog.sketch(pa.array(range(9_000)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "0 bytes that do not begin as a HyperLogLog of Redis does"),
        (b"HYLL", "4 bytes that do not begin"),
        (b"hyll" + DENSE[4:], "12304 bytes that do not begin"),
        (DENSE[:4] + b"\2" + DENSE[5:], r"encoding 2, known are 0 \(dense\) and 1 \(sparse\)"),
        (DENSE[:-1], "a dense one has 12304 bytes, got 12303"),
        (DENSE[:16] + b"\xff" * 12_288, "register 0 is 63, at most 51 is possible"),
        (SPARSE[:-2], "runs of .* registers, needs 16384"),
        (SPARSE[:16], "runs of 0 registers, needs 16384"),
        (SPARSE + b"\0", "runs of more than 16384 registers"),
        (SPARSE[:16] + b"\x40", "cut off within a run"),
        ("HYLL", "must be bytes, got str"),
    ],
)
def test_garbage_is_refused(text: bytes, says: str) -> None:
    with pytest.raises(fw.SketchError, match=f"sketch: {says}"):
        hyperloglog.merge([text] if isinstance(text, str) else [SPARSE, text])


REGISTERS = 16_384


def dense(registers: list[int]) -> bytes:
    """The dense string of Redis: six bits for each register, the lowest first."""
    registers = registers + [0] * (REGISTERS - len(registers))
    bits = sum(value << 6 * i for i, value in enumerate(registers))
    return b"HYLL\0\0\0\0" + bytes(7) + b"\x80" + bits.to_bytes(REGISTERS * 6 // 8, "little")


def sketch(registers: list[int]) -> Sketch:
    made = Sketch()
    made.merge_string(np.frombuffer(dense(registers), np.uint8))
    return made


@pytest.mark.parametrize(
    ("registers", "runs"),
    [
        ([7] * 9, [0x80 | 6 << 2 | 3, 0x80 | 6 << 2 | 3, 0x80 | 6 << 2, 0x7F, 0xF6]),
        ([32] * 5 + [31], [0x80 | 31 << 2 | 3, 0x80 | 31 << 2, 0x80 | 30 << 2, 0x7F, 0xF9]),
        ([0] * 63 + [1], [62, 0x80, 0x7F, 0xBF]),
        ([0] * 64 + [1], [63, 0x80, 0x7F, 0xBE]),
        ([0] * 65 + [1], [0x40, 64, 0x80, 0x7F, 0xBD]),
        ([0] * (REGISTERS - 1) + [1], [0x7F, 0xFE, 0x80]),
    ],
)
def test_runs_of_a_sparse_string(registers: list[int], runs: list[int]) -> None:
    found = sketch(registers)
    assert list(found.to_bytes()[16:]) == runs
    again = Sketch()
    again.merge_string(np.frombuffer(found.to_bytes(), np.uint8))
    assert again.registers().tolist() == sketch(registers).registers().tolist()


@pytest.mark.parametrize(
    ("registers", "size"),
    [([1, 0] * 1_491, 2_999), ([1, 2, 0] + [1, 0] * 1_490, 3_000), ([1, 2, 3, 0] + [1, 0] * 1_490, 12_304)],
    ids=["fits", "just fits", "one more"],
)
def test_sparse_strings_have_at_most_three_thousand_bytes(registers: list[int], size: int) -> None:
    assert len(sketch(registers).to_bytes()) == size


def test_a_register_that_no_hash_fills_is_refused() -> None:
    assert sketch([51]).registers()[0] == 51
    with pytest.raises(fw.SketchError, match="register 1 is 52"):
        sketch([51, 52])
