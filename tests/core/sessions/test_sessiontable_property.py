"""SessionTable in lockstep with lists of intervals: elements in any order, late ones, timers, and saved copies."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.sessions.sessiontable import SessionTable
from tests.support.kernel_models import RESULTS, assert_results, column, float64s, int64s
from tests.support.kernels import session_table

NEVER = -(2**63)


@dataclass
class Interval:
    start: int
    end: int
    values: list = field(default_factory=list)


class Model:
    """Sessions by key, the watermark, and what a copy that is brought up to date by saves holds."""

    def __init__(self, gap: int, lateness: int) -> None:
        self.gap, self.lateness, self.watermark = gap, lateness, NEVER
        self.sessions: dict[int, list[Interval]] = {}
        self.copy: dict[tuple[int, int], tuple[int, list]] = {}

    def is_over(self, end: int) -> bool:
        return end - 1 + self.lateness <= self.watermark

    def add(self, key: int, time: int, value: object) -> Interval | None:
        """Returns the session the element went to, None if it is late."""
        merged = Interval(time, time + self.gap)
        touched = [s for s in self.sessions.get(key, []) if s.start <= merged.end and s.end >= merged.start]
        if not touched and self.is_over(merged.end):
            return None
        for session in touched:
            merged.start, merged.end = min(merged.start, session.start), max(merged.end, session.end)
            merged.values += session.values
        merged.values.append(value)
        rest = [s for s in self.sessions.get(key, []) if s not in touched]
        self.sessions[key] = sorted([*rest, merged], key=lambda session: session.start)
        return merged

    def drop_over(self) -> None:
        for key, sessions in self.sessions.items():
            self.sessions[key] = [session for session in sessions if not self.is_over(session.end)]
        self.copy = {place: saved for place, saved in self.copy.items() if not self.is_over(saved[0])}

    def rows(self) -> list[tuple[int, int, int]]:
        return sorted((key, s.start, s.end) for key, sessions in self.sessions.items() for s in sessions)


class Pair:
    """A SessionTable run as an operator runs it, and the model."""

    def __init__(self, dtype: str, gap: int, lateness: int) -> None:
        self.dtype = dtype
        self.table: SessionTable = session_table(dtype)
        self.model = Model(gap, lateness)
        self.timers: set[tuple[int, int, int]] = set()

    def key_values(self, slots: np.ndarray) -> list[int]:
        return self.table.keys.take_int64(self.table.rows.keys(slots))[0].tolist()

    def arm(self, slots: np.ndarray) -> None:
        ends, keys = self.table.ends(slots).tolist(), self.table.rows.keys(slots).tolist()
        self.timers.update(zip([end - 1 for end in ends], slots.tolist(), keys, strict=True))

    def add(self, elements: list[tuple[int, int, object]]) -> None:
        table, model = self.table, self.model
        ids = table.keys.intern_int64(np.array([key for key, _, _ in elements], np.int64))
        times = np.array([time for _, time, _ in elements], np.int64)
        slots, armed = table.add(
            ids, times, model.gap, model.watermark, model.lateness,
            [column([value for _, _, value in elements], self.dtype)],
        )  # fmt: skip
        assert table.rows.live_marks(armed).all()
        self.arm(armed)
        joined = [model.add(*element) for element in elements]
        assert [session is None for session in joined] == (slots < 0).tolist()
        taken = [i for i, session in enumerate(joined) if session is not None]
        covering = table.covering(ids[taken], times[taken])
        assert (covering >= 0).all()
        if taken and taken[-1] == len(elements) - 1:
            assert slots[-1] == covering[-1], "nothing came after the last element, so its row is still there"
        table.keys.sweep()

    def advance(self, watermark: int) -> None:
        """Fires what the watermark has reached, as told by timers, and drops what is over."""
        table, model = self.table, self.model
        before, model.watermark = model.watermark, max(model.watermark, watermark)
        due = sorted(timer for timer in self.timers if timer[0] <= model.watermark)
        self.timers.difference_update(due)
        # A slot may hold another key's session by now, and be named twice.
        named = dict.fromkeys((slot, key) for _, slot, key in due)
        live = {(slot, table.rows.keys(np.array([slot], np.int32))[0]) for slot in table.rows.slots().tolist()}
        slots = np.array([slot for slot, key in named if (slot, key) in live], np.int32)
        assert len(np.unique(slots)) == len(slots)
        last = table.ends(slots) - 1
        fired = slots[(last > before) & (last <= model.watermark)]
        wanted = [row for row in model.rows() if before < row[2] - 1 <= model.watermark]
        assert sorted(self.rows(fired)) == wanted
        waiting = last > model.watermark
        self.arm(slots[waiting])
        over = np.array([model.is_over(end) for end in table.ends(slots).tolist()], bool)
        self.timers.update(
            (int(end) - 1 + model.lateness, int(slot), int(key))
            for slot, end, key in zip(
                slots[~waiting & ~over], table.ends(slots[~waiting & ~over]), table.rows.keys(slots[~waiting & ~over]),
                strict=True,
            )
        )  # fmt: skip
        table.drop(slots[over])
        model.drop_over()

    def save(self, whole: bool) -> None:
        """Brings the model's copy up to date as a snapshot or a delta would."""
        table, copy = self.table, self.model.copy
        if whole:
            changed = table.rows.slots()
            copy.clear()
        else:
            changed = table.rows.dirty_slots()
            ids, starts = table.removals(changed)
            for place in zip(table.keys.take_int64(ids)[0].tolist(), starts.tolist(), strict=True):
                copy.pop(place, None)
        for key, start, end in self.rows(changed):
            values = next(s.values for s in self.model.sessions[key] if s.start == start)
            copy[key, start] = (end, list(values))
        table.saved(changed)
        wanted = {(key, s.start): (s.end, s.values) for key, all_of in self.model.sessions.items() for s in all_of}
        assert repr(copy) == repr({place: wanted[place] for place in copy}), "the copy has what is not there"
        assert copy.keys() == wanted.keys()

    def rows(self, slots: np.ndarray) -> list[tuple[int, int, int]]:
        starts, ends = self.table.rows.starts(slots).tolist(), self.table.ends(slots).tolist()
        return list(zip(self.key_values(slots), starts, ends, strict=True))

    def compare(self) -> None:
        table, model = self.table, self.model
        table._check()
        slots = table.rows.slots()
        rows = self.rows(slots)
        assert sorted(rows) == model.rows()
        assert len(table) == len(rows)
        values = [next(s.values for s in model.sessions[key] if s.start == start) for key, start, _ in rows]
        assert_results(table.accumulators.results(table.rows, slots), RESULTS, values, self.dtype == "float64")
        keys, starts = table.rows.keys(slots), table.rows.starts(slots)
        assert table.find(keys, starts).tolist() == slots.tolist()
        assert table.covering(keys, starts).tolist() == slots.tolist()
        assert table.covering(keys, table.ends(slots) - 1).tolist() == slots.tolist()
        assert (table.find(keys, starts + 1) == -1).all()
        assert (table.covering(keys, table.ends(slots)) == -1).all(), "sessions touch"
        for slot, (_, _, end) in zip(slots.tolist(), rows, strict=True):
            wait = end - 1 if end - 1 > model.watermark else end - 1 + model.lateness
            timed = [time for time, at, _ in self.timers if at == slot]
            assert any(time <= wait for time in timed), f"no timer for [..., {end}): {timed}"


def elements(values: st.SearchStrategy, keys: int, span: int) -> st.SearchStrategy:
    element = st.tuples(st.integers(0, keys), st.integers(-span, span), st.one_of(st.none(), values))
    return st.lists(element, max_size=20)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@given(data=st.data())
def test_sessions_merge_fire_and_go(dtype: str, data: st.DataObject) -> None:
    gap, lateness = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([0, 0, 5, 30, 2**63 - 1]))
    keys, span = data.draw(st.sampled_from([(0, 60), (2, 60), (2, 20), (30, 20)]))
    values = int64s if dtype == "int64" else float64s
    step = st.one_of(
        st.tuples(st.just("add"), elements(values, keys, span)),
        st.tuples(st.just("add"), elements(values, keys, span)),
        st.tuples(st.just("advance"), st.integers(-span, span + 30)),
        st.tuples(st.just("save"), st.booleans()),
    )
    pair = Pair(dtype, gap, lateness)
    for action, argument in data.draw(st.lists(step, max_size=14)):
        getattr(pair, action)(argument)
        pair.compare()
    if lateness < 2**62:
        pair.advance(2**62)
        pair.compare()
        pair.table.keys.sweep()
        assert len(pair.table) == len(pair.table.keys) == 0


@given(seed=st.integers(0, 2**32 - 1), gap=st.integers(1, 40), lateness=st.sampled_from([0, 50]))
def test_many_sessions_merge_fire_and_go(seed: int, gap: int, lateness: int) -> None:
    """Blocks that are full or broken by late elements, and rows that are merged and used again within a block."""
    rng = np.random.default_rng(seed)
    pair = Pair("int64", gap, lateness)
    keys = int(rng.integers(5, 60))
    for now in range(0, 400, 200):
        n = int(rng.integers(0, 800))
        times = rng.integers(now - 300, now + 300, n).tolist()
        pair.add(list(zip(rng.integers(0, keys, n).tolist(), times, times, strict=True)))
        pair.compare()
        if rng.random() < 0.5:
            pair.save(False)
        pair.advance(now - int(rng.integers(0, 200)))
        pair.compare()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=30),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_inserted_sessions_go_on_as_if_grown(places: list[tuple[int, int]], gap: int, random) -> None:
    """A restored table holds the same sessions, whatever the order in which they come back."""
    grown = Pair("int64", gap, 0)
    grown.add([(key, time, 1) for key, time in places])
    rows = grown.model.rows()
    random.shuffle(rows)
    restored = Pair("int64", gap, 0)
    keys, starts, ends = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    slots = restored.table.insert(restored.table.keys.intern_int64(keys), starts, ends)
    restored.table.keys.sweep()
    restored.table._check()
    assert restored.rows(slots) == rows
    again = [(key, time, None) for key, time in places]
    grown.add(again)
    for key, start, end in rows:
        restored.model.sessions.setdefault(key, []).append(Interval(start, end))
    restored.add(again)
    assert sorted(restored.rows(restored.table.rows.slots())) == grown.model.rows()


@pytest.mark.parametrize("order", ["random", "mostly in order"])
def test_a_key_with_many_sessions(order: str) -> None:
    """Guides: searches that are far, sessions that merge, and others that are dropped behind the watermark."""
    rng = np.random.default_rng(17)
    pair = Pair("int64", 5, 0)
    most = 0
    for now in range(0, 8_000, 2_000):
        times = rng.integers(now - 12_000, now + 12_000, 900)
        if order != "random":
            times = np.where(rng.random(900) < 0.1, now - 12_000, np.sort(times))
        keys = np.where(rng.random(900) < 0.9, 7, 8).tolist()
        for at in range(0, 900, 300):
            part = slice(at, at + 300)
            pair.add([(key, time, 1) for key, time in zip(keys[part], times[part].tolist(), strict=True)])
        most = max(most, len(pair.table))
        pair.compare()
        pair.advance(now - 6_000)
        pair.compare()
    assert most > 1_200
    pair.advance(2**62)
    pair.compare()
    assert len(pair.table) == 0
