"""Random specs of aligned and session windows with their streams, as a stream and the naive model both take them."""

import datetime
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import settings
from hypothesis import strategies as st

import fastwin as fw
from tests.support import naive, naive_bags
from tests.support.lockstep import plain

__all__ = ["MANY", "Case", "cases"]

NAN = float("nan")
MANY = settings(max_examples=min(settings.default.max_examples, 150))

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
    "nf": (fw.Count(where="f"), ("count", 3)),
    "sf": (fw.Sum("v", where="f"), ("sum", 4)),
    "hf": (fw.Max(pc.field("x") * 2.0, where=pc.field("v") > 0), ("max", 5)),
    "lf": (fw.Last("w", where="f"), ("last", 6)),
    "ev": (fw.BoolAnd("f"), ("every", 7)),
    "bx": (fw.BitXor("v"), ("xor", 0)),
    "ba": (fw.BitAnd("v", where="f"), ("and", 4)),
    "fn": (fw.First("w", ignore_nulls=False), ("first with nulls", 2)),
    "ln": (fw.LastArrived("x", ignore_nulls=False), ("last arrived with nulls", 1)),
    "fa": (fw.FirstArrived("w"), ("first arrived", 2)),
    "la": (fw.LastArrived("v", where="f"), ("last arrived", 4)),
}

# Those that keep values; some of them share what they keep.
BAGS = {
    "qv": (fw.Quantile("v", 0.9), (naive_bags.quantile(0.9, 0.01), 0)),
    "qx": (fw.Median("x", 0.05), (naive_bags.quantile(0.5, 0.05), 1)),
    "qy": (fw.Quantile("x", 0, 0.05), (naive_bags.quantile(0, 0.05), 1)),
    "uv": (fw.CountDistinct("v"), (naive_bags.distinct, 0)),
    "uw": (fw.CountDistinct("w"), (naive_bags.distinct, 2)),
    "sv": (fw.Sum("v", distinct=True), (naive_bags.sum_distinct, 0)),
    "sx": (fw.Sum("x", distinct=True), (naive_bags.sum_distinct, 1)),
    "tx": (fw.TopK("x", 3), (naive_bags.most_frequent(3), 1)),
    "tw": (fw.TopK("w", 2), (naive_bags.most_frequent(2), 2)),
    "mw": (fw.Mode("w"), (naive_bags.mode, 2)),
    "lx": (fw.Largest("x", 2), (naive_bags.ends(2, True), 1)),
    "lw": (fw.Largest("w", 3), (naive_bags.ends(3, True), 2)),
    "aw": (fw.Smallest("w", 2), (naive_bags.ends(2, False), 2)),
    "cx": (fw.Collect("x"), (naive_bags.collected(), 1)),
    "cw": (fw.Collect("w", limit=3), (naive_bags.collected(3), 2)),
    "ex": (fw.CollectSet("x", limit=2), (naive_bags.union(2), 1)),
    "ew": (fw.CollectSet("w"), (naive_bags.union(), 2)),
    "jw": (fw.StringAgg("w", "|"), (naive_bags.joined("|"), 2)),
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
    """A spec and its input. Times are small numbers; `grid` and `shift` make ms of them. kept: which aggregates."""

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
    kept: str = "numbers"

    @property
    def aggregates(self) -> dict[str, tuple]:
        if self.kept == "bags":
            return BAGS
        return {name: AGGREGATES[name] for name in (FUSED if self.kept == "fused" else AGGREGATES)}

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
                values(v, x, text(key, first_id + i), flag(first_id + i)),
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
        columns["f"] = pa.array([flag(first_id + i) for i in range(len(drawn))], pa.bool_())
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


def flag(row: int) -> bool | None:
    """A condition for a row: true, false or null."""
    return (True, False, None, True)[row * 3 % 7 % 4]


def values(v: int | None, x: float | None, w: str | None, f: bool | None) -> tuple:
    """What the aggregates of the model read: the columns, then what is left of them where a condition is not true."""
    positive = v is not None and v > 0 and x is not None
    return v, x, w, True if f else None, v if f else None, x * 2.0 if positive else None, w if f else None, f


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
def cases(
    draw,
    coalesce: st.SearchStrategy = st.booleans(),
    lateness: st.SearchStrategy | None = None,
    policies: tuple[str, ...] = ("raise", "divert", "drop"),
) -> Case:
    unit = draw(st.sampled_from(list(TIME_TYPES)))
    grid = 1_000 if unit == "s" else draw(st.sampled_from([1, 1, 1_000]))
    shift = draw(st.sampled_from([0, 1_700_000_003_000, *((2**60, 1 - 2**60) if unit == "int64" else ())]))
    policy = draw(st.sampled_from(policies))
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
        kept=draw(st.sampled_from(["numbers", "fused", "bags"])),
    )
    return replace(case, steps=moved(case, steps))
