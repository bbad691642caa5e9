"""SessionTimers in lockstep with looking at every session."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.sessions.sessiontimers import SessionTimers
from tests.support.kernels import session_table

NEVER = -(2**63)
STEP = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 3), st.integers(-40, 60)), max_size=12)),
    st.tuples(st.just("advance"), st.integers(-30, 80)),
)


@given(st.lists(STEP, max_size=14), st.integers(1, 12), st.integers(0, 15), st.integers(1, 40), st.integers(0, 1))
def test_sessions_fire_once_and_go_in_time(steps: list, gap: int, lateness: int, width: int, far: int) -> None:
    sessions = session_table()
    timers = SessionTimers(sessions, width)
    shift, watermark = far * 10**12, NEVER
    for kind, argument in steps:
        if kind == "add":
            keys = sessions.keys.intern_int64(np.array([key for key, _ in argument], np.int64))
            times = np.array([time + shift for _, time in argument], np.int64)
            values = np.zeros(len(argument), np.int64)
            _, armed = sessions.add(keys, times, gap, watermark, lateness, [(values, None)])
            timers.arm(armed, watermark, lateness)
            sessions.keys.sweep()
        elif argument + shift > watermark:
            before, watermark = watermark, argument + shift
            slots = sessions.rows.slots()
            last = sessions.ends(slots) - 1
            fired, over = timers.advance(before, watermark, lateness)
            assert sessions.ends(fired).tolist() == sorted(sessions.ends(fired).tolist())
            assert sorted(fired.tolist()) == slots[(last > before) & (last <= watermark)].tolist()
            assert sorted(over.tolist()) == slots[last + lateness <= watermark].tolist()
            sessions.drop(over)
        sessions._check()
        timers._check(watermark, lateness)
        first = timers.peek(watermark, lateness)
        ends = sessions.ends(sessions.rows.slots()) - 1
        due = np.where(ends > watermark, ends, ends + lateness)
        assert (first is None) == (len(due) == 0)
        assert first is None or first == due.min()


def test_many_sessions_fire_in_order_of_their_ends() -> None:
    """Buckets that are sorted by radix, and a table of buckets that grows."""
    random = np.random.default_rng(3)
    sessions = session_table()
    timers = SessionTimers(sessions, 500)
    times = random.integers(-100_000, 100_000, 20_000)
    keys = sessions.keys.intern_int64(np.arange(20_000))
    _, armed = sessions.add(keys, times, 1_000, NEVER, 0, [(times, None)])
    timers.arm(armed, NEVER, 0)
    _, armed = sessions.add(keys[:7_000], times[:7_000] + 700, 1_000, NEVER, 0, [(times[:7_000], None)])
    assert len(armed) == 0
    sessions.keys.sweep()
    assert len(timers) == 20_000
    assert timers.nbytes >= 16 * 20_000
    before, seen = NEVER, 0
    for watermark in (-150_000, -99_000, -20_123, -20_000, 50_000, 2**62):
        fired, over = timers.advance(before, watermark, 0)
        ends = sessions.ends(fired)
        assert (np.diff(ends) >= 0).all()
        assert ((ends - 1 > before) & (ends - 1 <= watermark)).all()
        assert fired.tolist() == over.tolist()
        sessions.drop(over)
        timers._check(watermark, 0)
        before, seen = watermark, seen + len(fired)
    assert seen == 20_000
    assert len(timers) == 0 and timers.peek(2**62, 0) is None
    assert len(sessions.keys) == 0


@pytest.mark.parametrize(("span", "width"), [(30_000, 50_000), (5_000, 400)])
def test_small_steps_look_at_what_is_due(span: int, width: int) -> None:
    """A bucket with thousands of timers is put in order, while sessions grow and others come into it."""
    random = np.random.default_rng(8)
    sessions = session_table()
    timers = SessionTimers(sessions, width)
    watermark, now, keys, lateness = NEVER, 0, 0, 40
    armed_n = 0
    for size in [6_000] + [40] * 100 + [2_500] * 3 + [40] * 50:
        # Some elements are of sessions that are there.
        new = np.arange(keys, keys + size // 2)
        old = random.integers(max(0, keys - 6_000), keys + 1, size - size // 2)
        keys += len(new)
        ids = sessions.keys.intern_int64(np.concatenate([new, old]))
        times = np.sort(random.integers(now, now + span, size))[random.permutation(size)]
        _, armed = sessions.add(ids, times, 100, watermark, lateness, [(times, None)])
        timers.arm(armed, watermark, lateness)
        armed_n += len(armed)
        sessions.keys.sweep()
        for step in random.integers(1, 9, 4).tolist():
            now += step
            slots = sessions.rows.slots()
            last = sessions.ends(slots) - 1
            fired, over = timers.advance(watermark, now, lateness)
            assert (np.diff(sessions.ends(fired)) >= 0).all()
            assert sorted(fired.tolist()) == slots[(last > watermark) & (last <= now)].tolist()
            assert sorted(over.tolist()) == slots[last + lateness <= now].tolist()
            watermark = now
            sessions.drop(over)
            if step > 6:
                ends = sessions.ends(sessions.rows.slots()) - 1
                assert timers.peek(now, lateness) == np.where(ends > now, ends, ends + lateness).min()
        timers._check(now, lateness)
    assert len(timers) >= len(sessions) > 1_000
    assert armed_n < timers.looked < 20 * armed_n


def test_a_step_where_nothing_is_due_looks_at_nothing() -> None:
    sessions = session_table()
    timers = SessionTimers(sessions, 1_000_000)
    keys = sessions.keys.intern_int64(np.arange(5_000))
    times = np.arange(5_000) * 100
    _, armed = sessions.add(keys, times, 1_000, NEVER, 0, [(times, None)])
    timers.arm(armed, NEVER, 0)
    before = NEVER
    for at in range(100):
        watermark = 100 * at + 1_050
        fired, over = timers.advance(before, watermark, 0)
        assert sessions.ends(fired).tolist() == [100 * at + 1_000]
        sessions.drop(over)
        assert [len(found) for found in timers.advance(watermark, watermark + 40, 0)] == [0, 0]
        assert timers.peek(watermark + 40, 0) == 100 * at + 1_099
        before = watermark + 40
    assert timers.looked <= 300
