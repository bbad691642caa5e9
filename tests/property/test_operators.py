"""Aligned and session windows in lockstep with the naive model, on random specs and streams."""

import datetime
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import fastwin as fw
from tests import naive
from tests.lockstep import Lockstep, assert_rows_agree, emitted, main_rows, plain

NAN = float("nan")

# Key columns by kind: types, and four keys, each a tuple. What comes back is plain() of them.
KEYS: dict[str, tuple[list[pa.DataType], list[tuple]]] = {
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
    "lox": (fw.Min("x"), ("min", 1)),
    "hix": (fw.Max("x"), ("max", 1)),
    "mv": (fw.Mean("v"), ("mean", 0)),
    "mx": (fw.Mean("x"), ("mean", 1)),
}

TIME_TYPES = {
    "int64": pa.int64(), "s": pa.timestamp("s"), "ms": pa.timestamp("ms", "UTC"),
    "us": pa.timestamp("us", "America/New_York"), "ns": pa.timestamp("ns"),
}  # fmt: skip
PER_MS = {"us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True)
class Case:
    """A spec and its input. Times are small numbers; `grid` and `shift` make ms of them."""

    windows: naive.Sliding | naive.Sessions
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

    @property
    def key_count(self) -> int:
        return len(KEYS[self.keys][0])

    def spec(self) -> fw.WindowSpec:
        match self.windows:
            case naive.Sessions(gap):
                assigner = fw.EventTimeSessionWindows.with_gap(gap)
            case naive.Sliding(size, slide, offset) if size == slide:
                assigner = fw.TumblingEventTimeWindows.of(size, offset)
            case naive.Sliding(size, slide, offset):
                assigner = fw.SlidingEventTimeWindows.of(size, slide, offset)
        spec = fw.key_by(*(f"k{i}" for i in range(self.key_count))).event_time("t").window(assigner)
        spec = spec.allowed_lateness(self.lateness, coalesce=self.coalesce).bad_rows(self.policy)
        spec = spec.side_output_late_data() if self.late_output else spec
        return spec.aggregate(**{name: aggregate for name, (aggregate, _) in AGGREGATES.items()})

    def model(self) -> naive.Model:
        aggregates = [aggregate for _, aggregate in AGGREGATES.values()]
        return naive.Model(self.windows, aggregates, self.lateness, self.late_output, self.coalesce)

    def ms(self, time: int) -> int:
        return time * self.grid + self.shift

    def rows(self, drawn: list[tuple], first_id: int) -> list[naive.Row]:
        """Drawn rows as the model takes them."""
        choices = KEYS[self.keys][1]
        return [
            naive.Row(
                first_id + i, tuple(map(plain, choices[key])), None if time is None else self.ms(time), (v, x)
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
        columns["id"] = pa.array(range(first_id, first_id + len(drawn)), pa.int64())
        table = pa.table(columns)
        cuts = [len(drawn) * i // self.chunks for i in range(self.chunks + 1)]
        return pa.concat_tables([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:], strict=False)])

    def play(self, until: int | None = None):
        """Yields each step as ``(kind, argument, rows)``, and a last one that ends time."""
        done = 0
        for kind, argument in self.steps[:until]:
            if kind == "watermark":
                yield kind, self.ms(argument), None
            else:
                yield kind, self.table(argument, done), self.rows(argument, done)
                done += len(argument)
        yield "watermark", fw.MAX_TIMESTAMP, None


def windows(grid: int) -> st.SearchStrategy:
    small = st.integers(1, 12)
    tumbling = st.builds(
        lambda size, offset: naive.Tumbling(size * grid, (offset % size) * grid), small, st.integers(-12, 12)
    )
    sliding = st.builds(
        lambda size, slide, offset: naive.Sliding(size * grid, slide * grid, (abs(offset) % slide) * grid * (1 if offset > 0 else -1)),
        st.integers(1, 24), small, st.integers(-12, 12),
    )  # fmt: skip
    sessions = st.builds(lambda gap: naive.Sessions(gap * grid), small)
    return st.one_of(tumbling, sliding, sessions)


ROW = st.tuples(
    st.integers(0, 3),
    st.integers(-30, 60),
    st.none() | st.integers(-3, 3) | st.sampled_from([2**53 + 1, -(2**55)]),
    st.sampled_from([None, 0.25, -1.5, -0.0, 1e9, NAN, float("inf"), -float("inf")]),
)
BAD_ROW = st.tuples(st.integers(0, 3), st.none(), st.just(1), st.just(1.0))
BATCH = st.tuples(st.just("batch"), st.lists(ROW, max_size=14))
BATCH_WITH_BAD = st.tuples(st.just("batch"), st.lists(ROW | BAD_ROW, max_size=14))
WATERMARK = st.tuples(st.just("watermark"), st.integers(-35, 65))


@st.composite
def cases(draw, coalesce: st.SearchStrategy = st.booleans(), lateness: st.SearchStrategy | None = None) -> Case:
    unit = draw(st.sampled_from(list(TIME_TYPES)))
    grid = 1_000 if unit == "s" else draw(st.sampled_from([1, 1, 1_000]))
    shift = draw(st.sampled_from([0, 1_700_000_003_000, *((2**60, 1 - 2**60) if unit == "int64" else ())]))
    policy = draw(st.sampled_from(["raise", "divert", "drop"]))
    steps = draw(st.lists((BATCH if policy == "raise" else BATCH_WITH_BAD) | WATERMARK, min_size=1, max_size=10))
    if draw(st.booleans()):     # a stream: time moves on in what is drawn
        rise = draw(st.integers(1, 8))
        steps = [
            (kind, argument + i * rise if kind == "watermark" else [(k, t if t is None else t // 4 + i * rise, *r) for k, t, *r in argument])
            for i, (kind, argument) in enumerate(steps)
        ]
    return Case(
        windows=draw(windows(grid)),
        lateness=grid * draw(lateness if lateness is not None else st.just(0) | st.integers(1, 30)),
        coalesce=draw(coalesce),
        late_output=draw(st.booleans()),
        policy=policy,
        keys=draw(st.sampled_from(list(KEYS))),
        unit=unit,
        grid=grid,
        shift=shift,
        steps=tuple(steps),
        saves=tuple(draw(st.lists(st.sampled_from(["", "delta", "restore"]), min_size=len(steps), max_size=len(steps)))),
        chunks=draw(st.sampled_from([1, 1, 3])),
    )  # fmt: skip


def step(pair: Lockstep, kind: str, argument: Any, rows: list | None) -> None:
    if kind == "batch":
        pair.batch(argument, rows)
    else:
        pair.advance(argument)


def assert_empty(stream: fw.Stream) -> None:
    """After all windows are cleaned, not a byte about a key is left."""
    if stream._operator is None:
        return
    stream.delta()      # keys of sessions that a chunk may have to call removed are kept until it has
    assert stream.metrics.state_rows == stream.metrics.open_windows == 0
    assert len(stream._operator._keys) == 0
    stream._check_invariants()


@given(cases())
def test_stream_equals_model_after_every_step(case: Case) -> None:
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)
    assert_empty(pair.stream)


@given(cases(coalesce=st.just(False), lateness=st.integers(1, 30)))
def test_each_late_element_fires(case: Case) -> None:
    pair = Lockstep(case.spec().open(), case.model(), case.key_count)
    for kind, argument, rows in case.play():
        step(pair, kind, argument, rows)


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
            fresh = case.spec().open()      # knows no schema: it is in the state
            fresh.restore(chunks)
            pair.restored(fresh)
    assert_empty(pair.stream)


@given(cases(), st.integers(0, 9))
def test_snapshot_alone_equals_snapshot_and_deltas(case: Case, until: int) -> None:
    stream, chunks = case.spec().open(), []
    for kind, argument, _ in case.play(until):
        if argument == fw.MAX_TIMESTAMP:
            break
        stream.process(argument) if kind == "batch" else stream.advance_watermark(argument)
        if stream._operator is not None:
            chunks.append(stream.delta() if chunks else stream.snapshot())
    if not chunks:
        return
    by_deltas, by_snapshot = case.spec().open(), case.spec().open()
    by_deltas.restore(chunks)
    by_snapshot.restore([stream.snapshot()])
    assert by_deltas.metrics.open_windows == by_snapshot.metrics.open_windows == stream.metrics.open_windows
    assert by_deltas.metrics.state_rows == stream.metrics.state_rows
    rest = [other.advance_watermark(fw.MAX_TIMESTAMP) for other in (stream, by_deltas, by_snapshot)]
    first, *others = (main_rows(result.main, case.key_count) for result in rest)
    for other in others:
        assert_rows_agree(other, first)
        assert [row[2] for row in other] == [row[2] for row in first]


@given(cases(), st.randoms(use_true_random=False), st.integers(0, 20))
def test_run_equals_stream_in_any_batches(case: Case, dice: random.Random, delay: int) -> None:
    """Where the watermark's delay covers the disorder, batches and watermarks leave no trace in the result."""
    drawn = sorted((row for kind, rows in case.steps if kind == "batch" for row in rows), key=lambda row: row[1] or 0)
    drawn = [row if row[1] is None else (row[0], row[1] + dice.randint(-delay // 2, delay // 2), *row[2:]) for row in drawn]
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
