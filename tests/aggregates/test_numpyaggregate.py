"""Aggregates of one's own in numpy, on every operator, and those of the documentation."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw

DOC = Path(__file__).resolve().parents[2] / "docs" / "aggregates.md"


class Range(fw.NumpyAggregate):
    """Largest less smallest, beside how many; as two results it would be two aggregates."""

    state = {"low": "int64", "high": "int64"}  # noqa: RUF012
    output = pa.int64()

    def lift(self, v):
        return v, v

    def combine(self, a, b):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def lower(self, state):
        return state[1] - state[0]


class WeightedMean(fw.NumpyAggregate):
    state = {"total": "float64", "weight": "float64"}  # noqa: RUF012

    def __init__(self, x: str, w: str, scale: float = 1.0) -> None:
        super().__init__(x, w)
        self.scale = scale

    def lift(self, x, w):
        return x * w * self.scale, w

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def lower(self, state):
        return np.ma.masked_equal(state[0], 0) / np.where(state[1] == 0, 1, state[1])


WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of(100),
    "sliding": fw.SlidingEventTimeWindows.of(100, 30),
    "cumulative": fw.CumulativeEventTimeWindows.of(100, 20),
    "session": fw.EventTimeSessionWindows.with_gap(5),
}


def spec_of(windows: str, operator: str) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("ts").window(WINDOWS[windows]).allowed_lateness(20)
    spec = spec.trigger(fw.any_of(fw.EventTimeTrigger())) if operator == "general" else spec
    return spec.aggregate(
        range=Range("v"), lo=fw.Min("v"), hi=fw.Max("v"), mean=WeightedMean("x", "w", 2.0), n=fw.Count(),
        xs=fw.Sum("x"), both=WeightedMean("v", "w"),
    )  # fmt: skip


def table(seed: int, n: int = 1_500) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "k": rng.integers(0, 12, n),
            "ts": seed * 60 + rng.integers(0, 150, n),
            "v": pa.array(rng.integers(-1_000, 1_000, n), mask=rng.random(n) < 0.1),
            "x": pa.array(rng.integers(0, 50, n).astype(float), mask=rng.random(n) < 0.1),
            "w": pa.array(rng.integers(0, 3, n), mask=rng.random(n) < 0.1),
        }
    )


def check(main: pa.Table) -> int:
    """Holds the ranges to Min and Max; returns how many rows there are."""
    for low, high, found in zip(*(main[name].to_pylist() for name in ("lo", "hi", "range")), strict=True):
        assert found == (None if low is None else high - low)
    return main.num_rows


@pytest.mark.parametrize("operator", ["own", "general"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_on_every_operator_and_over_restores(windows: str, operator: str) -> None:
    spec = spec_of(windows, operator)
    assert ("operator: general" in spec.explain()) == (operator == "general")
    stream, chunks, rows, got = spec.open(), [], 0, []
    for step in range(4):
        for result in (stream.process(table(step)), stream.advance_watermark(step * 60 + 40)):
            rows += check(result.main)
            got.append(result.main)
        chunks.append(stream.delta() if chunks else stream.snapshot())
        stream = spec.open()
        stream.restore(chunks)
    got.append(stream.advance_watermark(10**6).main)
    assert rows + check(got[-1]) > 20
    # The last result of each window is that of all its elements, put together in plain numpy.
    final = {(r["k"], r["window_start"], r["window_end"]): r for part in got for r in part.to_pylist()}
    whole = pa.concat_tables([table(step) for step in range(4)]).to_pandas()
    stamp = {name: [row[name].timestamp() * 1_000 for row in final.values()] for name in ("window_start", "window_end")}
    checked = 0
    for row, start, end in zip(final.values(), stamp["window_start"], stamp["window_end"], strict=True):
        part = whole[(whole.k == row["k"]) & (whole.ts >= start) & (whole.ts < end)]
        if len(part) != row["n"]:
            continue  # some of its elements were late
        known = part.dropna(subset=["x", "w"])
        total, weight = (known.x * known.w * 2).sum(), known.w.sum()
        assert row["mean"] == (None if total == 0 else pytest.approx(total / weight))
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("keys", [12, 30_000])
def test_threads_give_the_same(keys: int) -> None:
    """Few keys have pieces of the table each, many have the elements of some keys. Whole numbers add up exactly."""
    n = 150_000
    rows = table(3, n).drop_columns(["k", "ts"])
    rows = rows.append_column("k", pa.array(np.arange(n) * 7919 % keys)).append_column("ts", pa.array(np.arange(n)))
    spec = spec_of("tumbling", "own") if keys > 12 else fw.key_by("k").event_time("ts").window(
        fw.TumblingEventTimeWindows.of(50_000)).aggregate(range=Range("v"), mean=WeightedMean("x", "w", 2.0))  # fmt: skip
    order = [("k", "ascending"), ("window_end", "ascending")]
    one, two = (spec.run(rows, threads=threads).main.sort_by(order) for threads in (1, 2))
    assert one.num_rows > 30
    assert two.equals(one)


def test_types_of_columns_and_results() -> None:
    class Span(Range):
        output = pa.duration("us")

    stamps = pa.array([5, 9, 7, None], pa.timestamp("us"))
    rows = pa.table(
        {"ts": [1, 2, 3, 4], "at": stamps, "flag": [True, False, True, True], "f": pa.array([1, 2, 3, 4], pa.float32())}
    )
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    main = spec.aggregate(a=Span("at"), b=Range("flag"), c=WeightedMean("f", "flag")).run(rows).main
    assert main.schema.field("a").type == pa.duration("us")
    assert (main["a"][0].value, main["b"][0].as_py(), main["c"][0].as_py()) == (4, 1, pytest.approx(8 / 3))


def test_windows_without_elements_are_null() -> None:
    rows = pa.table({"ts": [1], "v": pa.array([None], pa.int64())})
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(r=Range("v"))
    assert spec.run(rows).main["r"].to_pylist() == [None]


def test_arguments_and_versions_tell_specs_apart() -> None:
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    one, other = (spec.aggregate(m=WeightedMean("x", "w", scale)) for scale in (1.0, 2.0))
    assert one.fingerprint != other.fingerprint
    assert one != other
    assert one == spec.aggregate(m=WeightedMean("x", "w", 1.0))
    before = one.fingerprint
    WeightedMean.version = 2
    try:
        assert spec.aggregate(m=WeightedMean("x", "w", 1.0)).fingerprint != before
    finally:
        del WeightedMean.version


class Edged(Range):
    def __init__(self, edges) -> None:
        super().__init__("v")
        self.edges = edges


@pytest.mark.parametrize("within", [lambda held: held, lambda held: [held], lambda held: {"at": (held, 1)}])
@pytest.mark.parametrize(
    ("make", "others"),
    [
        (lambda: np.array([1.0, np.nan]), [np.array([1.0, 2.0]), np.array([1.0]), np.array([1, 2]), [1.0, 2.0], 1.0]),
        (lambda: np.array(["a", None], object), [np.array(["a", "b"], object), "a"]),
        (lambda: pd.Series([1, 2]), [pd.Series([1, 3]), pd.Series([1, 2, 3]), np.array([1, 2])]),
        (lambda: pa.array([1, 2]), [pa.array([1, 3])]),
    ],
)
def test_arrays_among_the_attributes_tell_specs_apart(make, others, within) -> None:
    base = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    spec = base.aggregate(r=Edged(within(make())))
    assert spec == base.aggregate(r=Edged(within(make())))
    for other in others:
        assert spec != base.aggregate(r=Edged(within(other)))
    assert len({Edged(within(one)) for one in (make(), make(), *others)}) == 1 + len(others)


class Broken(Range):
    def __init__(self, part: str, answer) -> None:
        super().__init__("v")
        self.part, self.answer = part, answer

    def _do(self, part, given):
        return self.answer(given) if part == self.part else None

    def lift(self, v):
        return self.answer((v, v)) if self.part == "lift" else super().lift(v)

    def combine(self, a, b):
        return self.answer(super().combine(a, b)) if self.part == "combine" else super().combine(a, b)

    def lower(self, state):
        return self.answer(super().lower(state)) if self.part == "lower" else super().lower(state)


def _raise(_):
    raise KeyError("oops")


@pytest.mark.parametrize("part", ["lift(self, *columns)", "combine(self, a, b)", "lower(self, state)"])
def test_what_is_missing_is_named(part: str) -> None:
    name = part.partition("(")[0]
    base = getattr(fw.NumpyAggregate, name)
    lacking = type("Lacking", (Broken,), {name: base})("", None)
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(r=lacking)
    with pytest.raises(fw.UserFunctionError, match=rf"Lacking\.{name}: .*Lacking needs {re.escape(part)}"):
        spec.run(pa.table({"ts": [1, 2, 3], "v": [1, 2, 3]}))


@pytest.mark.parametrize("part", ["lift", "combine", "lower"])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (_raise, "KeyError: 'oops'"),
        (lambda found: found[:1] if isinstance(found, tuple) else found[:0], "must return"),
        (lambda found: [a[:0] for a in found] if isinstance(found, tuple) else 3, "must return arrays of"),
        (lambda found: [a + 0.5 for a in found] if isinstance(found, tuple) else found + 0.5, "Cannot cast"),
        (lambda found: None, "must return"),
    ],
)
@pytest.mark.parametrize("general", [False, True])
def test_what_user_code_does_wrong_is_told(part: str, answer, says: str, general: bool) -> None:
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(r=Broken(part, answer))
    spec = spec.with_pane_info() if general else spec
    rows = pa.table({"ts": [1, 2, 3], "v": [1, 2, 3]})
    stream = spec.open()

    def play() -> None:
        stream.process(rows)
        stream.advance_watermark(100)

    with pytest.raises(fw.UserFunctionError, match=rf"Broken\.{part}: .*{says}"):
        play()
    with pytest.raises(fw.StateError):
        stream.process(rows)


@pytest.mark.parametrize("part", ["lift", "combine", "lower"])
@pytest.mark.parametrize("kind", ["<u8", ">u8"])
def test_integers_that_do_not_fit_do_not_wrap(part: str, kind: str) -> None:
    def answer(most: int):
        def given(found):
            made = [np.full(len(a), most, kind) for a in (found if isinstance(found, tuple) else (found,))]
            return tuple(made) if isinstance(found, tuple) else made[0]

        return given

    table = pa.table({"ts": [1, 2], "v": [1, 2]})
    start = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    with pytest.raises(fw.UserFunctionError, match=rf"Broken\.{part}: .* integers below 2\*\*63, returned {2**63 + 5}"):
        start.aggregate(r=Broken(part, answer(2**63 + 5))).run(table)
    assert start.aggregate(r=Broken(part, answer(2**63 - 1))).run(table).main.num_rows == 1


@pytest.mark.parametrize("part", ["lift", "combine"])
def test_only_results_may_be_masked(part: str) -> None:
    def answer(masked: bool):
        return lambda found: [np.ma.array(a, mask=masked) for a in found]

    table = pa.table({"ts": [1, 2, 3], "v": [1, 2, 5]})
    start = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    says = rf"Broken\.{part}: ValueError: must mask nothing, as only `lower` may, masked \d of \d"
    with pytest.raises(fw.UserFunctionError, match=says):
        start.aggregate(r=Broken(part, answer(True))).run(table)
    assert start.aggregate(r=Broken(part, answer(False))).run(table).main["r"].to_pylist() == [4]


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize(
    ("kind", "value", "nearest"),
    [
        (pa.int8(), 128, 127),
        (pa.int8(), -129, -128),
        (pa.uint8(), 300, 255),
        (pa.uint8(), -1, 0),
        (pa.int32(), 2**31, 2**31 - 1),
        (pa.uint32(), 2**32, 2**32 - 1),
        (pa.uint64(), -1, 2**63 - 1),
        (pa.date32(), -(2**31) - 1, -(2**31)),
        (pa.time32("s"), 2**40, 5),
    ],
    ids=str,
)
def test_results_that_the_output_does_not_hold_do_not_wrap(kind, value: int, nearest: int, general: bool) -> None:
    class Given(Range):
        output = kind

        def __init__(self, value: int, masked: bool = False) -> None:
            super().__init__("v")
            self.value, self.masked = value, masked

        def lower(self, state):
            return np.ma.array(np.full(len(state[0]), self.value, np.int64), mask=self.masked)

    table = pa.table({"ts": [1, 2], "v": [1, 2]})
    start = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    start = start.with_pane_info() if general else start
    says = rf"Given\.lower: must return integers of {re.escape(str(kind))}, -?\d+ to \d+, returned {value}$"
    with pytest.raises(fw.UserFunctionError, match=says):
        start.aggregate(r=Given(value)).run(table)
    assert start.aggregate(r=Given(value, masked=True)).run(table).main["r"].null_count == 1
    found = start.aggregate(r=Given(nearest)).run(table).main["r"]
    assert found.combine_chunks().equals(pa.array([nearest], kind))


def test_definitions_are_checked() -> None:
    with pytest.raises(fw.SpecError, match="Range: columns must be names of columns, at least one"):
        Range()
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(r=Range("v"))
    with pytest.raises(fw.SpecError, match=r"Range\('v'\): takes columns of numbers.* but column 'v' is string"):
        spec.run(pa.table({"ts": [1], "v": ["a"]}))

    refused = r"Range\('v'\): takes columns of numbers \(uint64 excepted\).* but column 'v' is .*uint64"
    with pytest.raises(fw.SpecError, match=refused + ".*; cast it to int64 or float64"):
        spec.run(pa.table({"ts": [1], "v": pa.array([2**63], pa.uint64())}))
    with pytest.raises(fw.SpecError, match=refused):
        spec.run(pa.table({"ts": [1], "v": pa.array([2**63], pa.uint64()).dictionary_encode()}))

    class Stateless(Range):
        state = {}  # noqa: RUF012

    with pytest.raises(fw.SpecError, match=r"Stateless: state must name int64 and float64 numbers, got \{\}"):
        Stateless("v")

    class Texts(Range):
        output = pa.string()

    with pytest.raises(fw.SpecError, match="Texts: output must be a pyarrow type of numbers or times"):
        Texts("v")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOC.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_examples_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict = {}
    for block in _blocks("python"):
        exec(compile(block, str(DOC), "exec"), scope)
    assert capsys.readouterr().out.endswith("[2.0, 2.0, None, None]\n")


@pytest.mark.slow
def test_the_accumulator_in_cython_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Cython")
    (source,) = _blocks("cython")
    (tmp_path / "product.pyx").write_text(source)
    (tmp_path / "build.py").write_text(
        "from Cython.Build import cythonize\nfrom setuptools import Extension, setup\n"
        "directives = {'language_level': 3, 'boundscheck': False}\n"
        "module = Extension('product', ['product.pyx'], extra_compile_args=['-O1'])\n"
        f"setup(ext_modules=cythonize([module], include_path=[{str(DOC.parents[1])!r}], compiler_directives=directives))\n"
    )
    done = subprocess.run(
        [sys.executable, "build.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    scope: dict = {"fw": fw, "pa": pa}
    exec(_blocks("python")[-1], scope)
    rows = pa.table({"ts": [1, 2, 3, 14], "k": [1, 1, 2, 1], "x": [2.0, 5.0, None, -3.0]})
    for windows, wanted in (
        (fw.TumblingEventTimeWindows.of(20), [-30.0, None]),
        (fw.SlidingEventTimeWindows.of(20, 10), [10.0, -30.0, -3.0]),
    ):
        spec = fw.key_by("k").event_time("ts").window(windows).aggregate(p=scope["Product"]("x"))
        got = spec.run(rows).main.sort_by([("window_start", "ascending"), ("k", "ascending")])["p"].to_pylist()
        assert [value for value in got if value is not None or None in wanted] == wanted
