"""Aligned and session windows in lockstep with the naive model, on random specs and streams."""

import copy
import datetime
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin import bounded
from tests import naive
from tests.lockstep import Lockstep, assert_rows_agree, emitted, main_rows, plain

NAN = float("nan")
MANY = settings(max_examples=min(2 * settings.default.max_examples, 300))

# Key columns by kind: types, and four keys or more, each a tuple. What comes back is plain() of them.
KEYS: dict[str, tuple[list[pa.DataType], list[tuple]]] = {
    "many": ([pa.string()], [(f"key {i}",) for i in range(700)]),
    "none": ([], [()] * 4),
    "int64": ([pa.int64()], [(0,), (-1,), (2**63 - 1,), (None,)]),
    "text": ([pa.string()], [("a",), ("",), ("ab",), (None,)]),
    "dictionary": ([pa.dictionary(pa.int8(), pa.string())], [("a",), ("b",), ("c",), (None,)]),
    "float": ([pa.float64()], [(-0.0,), (1.5,), (NAN,), (None,)]),
    "date": ([pa.date32()], [(datetime.date(1969, 12, 31),), (datetime.date(2024, 2, 29),), (datetime.date.max,), (None,)]),
    "decimal": ([pa.decimal128(9, 2)], [(Decimal("0.10"),), (Decimal("-7.00"),), (Decimal("1.00"),), (None,)]),
    "two": ([pa.string(), pa.int16()], [("a", 1), ("a", None), (None, 1), (None, None)]),
    "three": (
        [pa.bool_(), pa.binary(), pa.timestamp("us")],
        [(True, b"", None), (None, b"x", datetime.datetime(2000, 1, 1)), (False, None, None), (True, b"", datetime.datetime.max)],
    ),
}  # fmt: skip

AGGREGATES = {
    "n": (fw.Count(), ("count", None)),
    "nv": (fw.Count("v"), ("count", 0)),
    "sv": (fw.Sum("v"), ("sum", 0)),
    "sx": (fw.Sum("x"), ("sum", 1)),
    "lov": (fw.Min("v"), ("min", 0)),
    "hiv": (fw.Max("v"), ("max", 0)),
    "lox": (fw.Min("x"), ("min", 1)),
    "hix": (fw.Max("x"), ("max", 1)),
    "mv": (fw.Mean("v"), ("mean", 0)),
    "mx": (fw.Mean("x"), ("mean", 1)),
    "vv": (fw.Variance("v"), ("variance", 0)),
    "dx": (fw.StdDev("x"), ("stddev", 1)),
    "fx": (fw.First("x"), ("first", 1)),
    "lw": (fw.Last("w"), ("last", 2)),
    "aw": (fw.ArgMin("w", by="x"), ("argmin", (2, 1))),
    "av": (fw.ArgMax("v", by="w"), ("argmax", (0, 2))),
    "ax": (fw.ArgMax("x", by="x"), ("argmax", (1, 1))),
}

# One visit to a row feeds all of these where the column has no nulls; the others take their turns.
FUSED = ("n", "sv", "lov", "hiv")

TIME_TYPES = {
    "int64": pa.int64(), "s": pa.timestamp("s"), "ms": pa.timestamp("ms", "UTC"),
    "us": pa.timestamp("us", "America/New_York"), "ns": pa.timestamp("ns"),
}  # fmt: skip
PER_MS = {"us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True)
class Case:
    """A spec and its input. Times are small numbers; `grid` and `shift` make ms of them."""

    windows: naive.Sliding | naive.Cumulative | naive.Sessions
    lateness: int
    coalesce: bool
    late_output: bool
    policy: str
    keys: str
    unit: str
    grid: int
    shift: int
    steps: tuple
    saves: tuple
    chunks: int
    fused: bool = False

    @property
    def aggregates(self) -> dict[str, tuple]:
        return {name: AGGREGATES[name] for name in (FUSED if self.fused else AGGREGATES)}

    @property
    def key_count(self) -> int:
        return len(KEYS[self.keys][0])

    def spec(self) -> fw.WindowSpec:
        match self.windows:
            case naive.Sessions(gap):
                assigner = fw.EventTimeSessionWindows.with_gap(gap)
            case naive.Cumulative(size, step, offset):
                assigner = fw.CumulativeEventTimeWindows.of(size, step, offset)
            case naive.Sliding(size, slide, offset) if size == slide:
                assigner = fw.TumblingEventTimeWindows.of(size, offset)
            case naive.Sliding(size, slide, offset):
                assigner = fw.SlidingEventTimeWindows.of(size, slide, offset)
        spec = fw.key_by(*(f"k{i}" for i in range(self.key_count))).event_time("t").window(assigner)
        spec = spec.allowed_lateness(self.lateness, coalesce=self.coalesce).bad_rows(self.policy)
        spec = spec.side_output_late_data() if self.late_output else spec
        return spec.aggregate(**{name: aggregate for name, (aggregate, _) in self.aggregates.items()})

    def model(self) -> naive.Model:
        aggregates = [aggregate for _, aggregate in self.aggregates.values()]
        return naive.Model(self.windows, aggregates, self.lateness, self.late_output, self.coalesce)

    def ms(self, time: int) -> int:
        return time * self.grid + self.shift

    def rows(self, drawn: list[tuple], first_id: int) -> list[naive.Row]:
        """Drawn rows as the model takes them."""
        choices = KEYS[self.keys][1]
        return [
            naive.Row(
                first_id + i,
                tuple(map(plain, choices[key])),
                None if time is None else self.ms(time),
                (v, x, text(key, first_id + i)),
            )
            for i, (key, time, v, x) in enumerate(drawn)
        ]

    def table(self, drawn: list[tuple], first_id: int) -> pa.Table:
        """The same rows as a table, in `chunks` chunks; finer units carry a fraction of a millisecond."""
        kinds, choices = KEYS[self.keys]
        fine = PER_MS.get(self.unit, 1)
        per_s = 1_000 if self.unit == "s" else 1
        stamps = [
            None if time is None else self.ms(time) * fine // per_s + (first_id + i) * 37 % fine
            for i, (_, time, _, _) in enumerate(drawn)
        ]
        columns = {f"k{i}": pa.array([choices[row[0]][i] for row in drawn], kind) for i, kind in enumerate(kinds)}
        columns["x"] = pa.array([row[3] for row in drawn], pa.float64())
        columns["t"] = pa.array(stamps, pa.int64()).cast(TIME_TYPES[self.unit])
        columns["v"] = pa.array([row[2] for row in drawn], pa.int64())
        columns["w"] = pa.array([text(row[0], first_id + i) for i, row in enumerate(drawn)], pa.string())
        columns["id"] = pa.array(range(first_id, first_id + len(drawn)), pa.int64())
        table = pa.table(columns)
        cuts = [len(drawn) * i // self.chunks for i in range(self.chunks + 1)]
        return pa.concat_tables([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:], strict=False)])

    def play(self, until: int | None = None):
        """Yields each step as ``(kind, argument, rows)``, and a last one that ends time."""
        done = 0
        for kind, argument in self.steps[:until]:
            if kind == "watermark":
                yield kind, argument, None
            else:
                yield kind, self.table(argument, done), self.rows(argument, done)
                done += len(argument)
        yield "watermark", fw.MAX_TIMESTAMP, None


def text(key: int, row: int) -> str | None:
    """A text for a row: null, empty, or of any length, and seldom the same twice."""
    return None if (key + row) % 5 == 0 else "xyz"[row % 3] * (row * 7 % 11) + str(row % 4)


def windows(grid: int) -> st.SearchStrategy:
    small = st.integers(1, 12)

    def sliding(size: int, slide: int, offset: int) -> naive.Sliding:
        return naive.Sliding(size * grid, slide * grid, (offset - 12) % (2 * slide - 1) * grid - (slide - 1) * grid)

    def cumulative(steps: int, step: int, offset: int) -> naive.Cumulative:
        size = steps * step
        return naive.Cumulative(size * grid, step * grid, (offset % (2 * size - 1) - (size - 1)) * grid)

    offset = st.integers(0, 24)
    return st.one_of(
        st.builds(lambda size, offset: sliding(size, size, offset), small, offset),
        st.builds(sliding, st.integers(1, 24), small, offset),
        st.builds(sliding, st.integers(1, 24), small, offset),
        st.builds(sliding, st.integers(1, 6), st.integers(7, 12), offset),
        st.builds(cumulative, st.integers(1, 6), st.integers(1, 5), offset),
        st.builds(lambda gap: naive.Sessions(gap * grid), small),
        st.builds(lambda gap: naive.Sessions(gap * grid), small),
    )


ROW = st.tuples(
    st.integers(0, 3),
    st.integers(-30, 60),
    st.none() | st.integers(-3, 3) | st.sampled_from([2**53 + 1, -(2**55)]),
    st.sampled_from([None, 0.25, -1.5, -0.0, 1e9, NAN, float("inf"), -float("inf")]),
)
BAD_ROW = st.tuples(st.integers(0, 3), st.none(), st.just(1), st.just(1.0))
BATCH = st.tuples(st.just("batch"), st.lists(ROW, max_size=14))
BATCH_WITH_BAD = st.tuples(st.just("batch"), st.lists(ROW | BAD_ROW, max_size=14))
# A watermark: where about, what it is moved to from there, and a last shift in ms.
WATERMARK = st.tuples(
    st.just("watermark"),
    st.tuples(st.integers(-35, 65), st.sampled_from(["", "end", "cleanup"]), st.sampled_from([0, 0, -1])),
)


def moved(case: Case, steps: list[tuple]) -> tuple:
    """Steps with watermarks in ms, many of them just where a window fires or is cleaned."""
    done, ends = [], [0]
    for kind, argument in steps:
        if kind == "watermark":
            time, what, shift = argument
            argument = case.ms(time)
            if what and isinstance(case.windows, naive.Sliding):
                argument -= (argument - case.windows.offset - case.windows.size) % case.windows.slide
            elif what and isinstance(case.windows, naive.Cumulative):
                argument -= (argument - case.windows.offset) % case.windows.step
            elif what:
                argument = ends[time % len(ends)]
            argument += (shift - 1 if what else shift) + (case.lateness if what == "cleanup" else 0)
        elif isinstance(case.windows, naive.Sessions):
            ends = [case.ms(row[1]) + case.windows.gap for row in argument if row[1] is not None] or ends
        done.append((kind, argument))
    return tuple(done)


@st.composite
def cases(draw, coalesce: st.SearchStrategy = st.booleans(), lateness: st.SearchStrategy | None = None) -> Case:
    unit = draw(st.sampled_from(list(TIME_TYPES)))
    grid = 1_000 if unit == "s" else draw(st.sampled_from([1, 1, 1_000]))
    shift = draw(st.sampled_from([0, 1_700_000_003_000, *((2**60, 1 - 2**60) if unit == "int64" else ())]))
    policy = draw(st.sampled_from(["raise", "divert", "drop"]))
    steps = draw(st.lists((BATCH if policy == "raise" else BATCH_WITH_BAD) | WATERMARK, min_size=1, max_size=10))
    rise = draw(st.sampled_from([None, 1, 3, 8]))
    for i, (kind, argument) in enumerate(steps if rise else []):  # a stream: time moves on
        if kind == "watermark":
            steps[i] = kind, (argument[0] // 4 + i * rise, *argument[1:])
        else:
            steps[i] = kind, [(k, t if t is None else t // 4 + i * rise, *r) for k, t, *r in argument]
    case = Case(
        windows=draw(windows(grid)),
        lateness=grid * draw(lateness if lateness is not None else st.just(0) | st.integers(1, 30)),
        coalesce=draw(coalesce),
        late_output=draw(st.booleans()),
        policy=policy,
        keys=draw(st.sampled_from(list(KEYS))),
        unit=unit,
        grid=grid,
        shift=shift,
        steps=(),
        saves=tuple(
            draw(st.lists(st.sampled_from(["", "delta", "restore"]), min_size=len(steps), max_size=len(steps)))
        ),
        chunks=draw(st.sampled_from([1, 1, 3])),
        fused=draw(st.booleans()),
    )
    return replace(case, steps=moved(case, steps))


def step(pair: Lockstep, kind: str, argument: Any, rows: list | None) -> None:
    if kind == "batch":
        pair.batch(argument, rows)
    else:
        pair.advance(argument)


def assert_empty(stream: fw.Stream) -> None:
    """After all windows are cleaned, not a byte about a key is left."""
    if stream._operator is None:
        return
    stream.delta()  # keys of sessions that a chunk may have to call removed are kept until it has
    assert stream.metrics.state_rows == stream.metrics.open_windows == 0
    assert len(stream._operator._keys) == 0
    stream._check_invariants()


@MANY
@given(cases())
def test_stream_equals_model_after_every_step(case: Case) -> None:
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)
    assert_empty(pair.stream)


@MANY
@given(cases(coalesce=st.just(False), lateness=st.integers(1, 30)))
def test_each_late_element_fires(case: Case) -> None:
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)


@MANY
@given(cases())
def test_restored_stream_goes_on_as_if_nothing_had_happened(case: Case) -> None:
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    chunks: list[bytes] = []
    for (kind, argument, rows), save in zip(case.play(), [*case.saves, "delta"], strict=True):
        step(pair, kind, argument, rows)
        if not save or pair.stream._operator is None:
            continue
        chunks.append(pair.stream.delta() if chunks else pair.stream.snapshot())
        if save == "restore":
            fresh = case.spec().open()  # knows no schema: it is in the state
            fresh.restore(chunks)
            pair.restored(fresh)
    assert_empty(pair.stream)


@MANY
@given(cases())
def test_snapshot_and_deltas_hold_everything_after_every_step(case: Case) -> None:
    stream, model, chunks = case.spec().open(), case.model(), []
    for kind, argument, rows in case.play():
        model.step(kind, argument if rows is None else rows)
        stream.process(argument) if kind == "batch" else stream.advance_watermark(argument)
        if stream._operator is None:
            continue
        chunks.append(stream.delta() if chunks else stream.snapshot())
        fresh = case.spec().open()
        fresh.restore(chunks)
        fresh._check_invariants()
        assert fresh.watermark == model.watermark
        assert fresh.metrics.open_windows == len(model.contents)
        assert fresh.metrics.state_rows == stream.metrics.state_rows
        wanted = emitted(copy.deepcopy(model).advance(fw.MAX_TIMESTAMP).emissions)
        got = main_rows(fresh.advance_watermark(fw.MAX_TIMESTAMP).main, case.key_count)
        assert_rows_agree(got, wanted)
        assert [row[2] for row in got] == [row[2] for row in wanted]
    if chunks:
        alone = case.spec().open()
        alone.restore([stream.snapshot()])
        assert alone.watermark == stream.watermark
        assert_empty(alone)


@MANY
@given(cases(), st.randoms(use_true_random=False), st.integers(0, 20))
def test_run_equals_stream_in_any_batches(case: Case, dice: random.Random, delay: int) -> None:
    """Where the watermark's delay covers the disorder, batches and watermarks leave no trace in the result."""
    drawn = sorted((row for kind, rows in case.steps if kind == "batch" for row in rows), key=lambda row: row[1] or 0)
    drawn = [
        row if row[1] is None else (row[0], row[1] + dice.randint(-delay // 2, delay // 2), *row[2:]) for row in drawn
    ]
    table, model = case.table(drawn, 0), case.model()
    model.batch(case.rows(drawn, 0))
    wanted = emitted(model.advance(fw.MAX_TIMESTAMP).emissions)
    done = case.spec().run(table)
    assert_rows_agree(main_rows(done.main, case.key_count), wanted, "run")
    assert [row[2] for row in main_rows(done.main, case.key_count)] == sorted(row[2] for row in wanted)
    assert done.late.num_rows == 0
    stream = case.spec().open(watermark=(delay + 1) * case.grid)
    got, bad, at = [], 0, 0
    while at < len(drawn) or at == 0:
        size = dice.choice([0, 1, 2, 3, 10])
        fed = stream.process(table.slice(at, size))
        got += main_rows(fed.main, case.key_count)
        bad += fed.bad.num_rows
        at += size or (at == 0 and not drawn)
    got += main_rows(stream.advance_watermark(fw.MAX_TIMESTAMP).main, case.key_count)
    assert_rows_agree(got, wanted, "stream")
    assert stream.metrics.late == stream.metrics.num_late_records_dropped == 0
    assert bad == done.bad.num_rows == (sum(row[1] is None for row in drawn) if case.policy == "divert" else 0)


@MANY
@given(cases(), st.integers(1, 4), st.booleans(), st.sampled_from([0, 1 << 23]))
def test_run_in_pieces_equals_model(case: Case, piece: int, ordered: bool, whole: int) -> None:
    """What a run fires on the way, knowing what is still to come, is what it would fire at the end."""
    drawn = [row for kind, rows in case.steps if kind == "batch" for row in rows]
    drawn = sorted(drawn, key=lambda row: row[1] or 0) if ordered else drawn
    model = case.model()
    model.batch(case.rows(drawn, 0))
    wanted = emitted(model.advance(fw.MAX_TIMESTAMP).emissions)
    with mock.patch.multiple(bounded, _PIECE_ROWS=piece, _WHOLE_ROWS=whole):
        done = case.spec().run(case.table(drawn, 0))
    got = main_rows(done.main, case.key_count)
    assert_rows_agree(got, wanted, "run")
    assert [row[2] for row in got] == sorted(row[2] for row in wanted)
    assert done.late.num_rows == 0


@MANY
@given(cases())
def test_next_timer_tells_what_is_next(case: Case) -> None:
    """Below the next timer nothing fires and nothing is cleaned; stepping from timer to timer loses nothing."""
    stream, model = case.spec().open(), case.model()
    for kind, argument, rows in case.play():
        if argument == fw.MAX_TIMESTAMP:
            break
        model.step(kind, argument if rows is None else rows)
        stream.process(argument) if kind == "batch" else stream.advance_watermark(argument)
    wanted = emitted(model.advance(fw.MAX_TIMESTAMP).emissions)
    got, steps = [], 0
    while (first := stream.next_timer()) is not None:
        before = stream.metrics.state_rows
        quiet = stream.advance_watermark(first - 1)
        assert quiet.main.num_rows == 0
        assert stream.metrics.state_rows == before
        got += main_rows(stream.advance_watermark(first).main, case.key_count)
        steps += 1
        assert steps < 1_000, "the next timer does not move"
    assert_rows_agree(got, wanted)
    assert stream.metrics.state_rows == 0


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("size, slide", [(96, 1), (97, 4), (1_000, 7), (12, 12)])
def test_many_windows_an_element(size: int, slide: int, coalesce: bool) -> None:
    dice = random.Random(size)
    case = Case(
        naive.Sliding(size, slide, -(slide // 2)), size // 3, coalesce, True, "raise", "two", "int64", 1, 0,
        tuple(
            ("batch", [(dice.randrange(4), t + dice.randint(-size, 5), dice.randint(-9, 9), None) for _ in range(20)])
            if t % 3 else ("watermark", t)
            for t in range(-15, 3 * size, max(1, size // 9))
        ),
        (), 1,
    )  # fmt: skip
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)
    assert_empty(pair.stream)


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("lateness", [0, 400])
@pytest.mark.parametrize(
    "windows",
    [
        naive.Tumbling(100, 7),
        naive.Sliding(100, 40),
        naive.Sliding(30, 70, -5),
        naive.Sliding(300, 9),
        naive.Cumulative(300, 20, 50),
        naive.Sessions(60),
    ],
    ids=str,
)
def test_large_batches(
    windows: naive.Sliding | naive.Cumulative | naive.Sessions, lateness: int, coalesce: bool
) -> None:
    """Beyond the blocks that kernels work in, with tables that grow, hundreds of keys and late elements throughout."""
    dice = random.Random(f"{windows} {lateness}")
    steps = []
    for i in range(4):
        times = [i * 600 + dice.randint(-1_800, 600) for _ in range(1_500)]
        batch = [(dice.randrange(700), time, dice.randint(-9, 9), dice.choice([None, 0.5])) for time in times]
        steps += [("batch", batch), ("watermark", i * 600 + 100)]
    case = Case(windows, lateness, coalesce, True, "raise", "many", "ms", 1, 0, tuple(steps), (), 2)
    pair, chunks = Lockstep(case.spec().open(), case.model(), case.key_count), []
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)
        chunks.append(pair.stream.delta() if chunks else pair.stream.snapshot())
        if len(chunks) % 3 == 0:
            fresh = case.spec().open()
            fresh.restore(chunks)
            pair.restored(fresh)
    assert pair.model.late > 50
    assert_empty(pair.stream)
