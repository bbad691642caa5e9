import numpy as np
import pytest

from fastwin.core.sessions.sessiontimers import SessionTimers
from tests.support.kernels import session_table, slots, times

LOW, TOP = -(2**63), 2**63 - 1


def test_no_sessions() -> None:
    timers = SessionTimers(session_table(), 10)
    fired, over = timers.advance(LOW, TOP, 0)
    assert len(fired) == len(over) == 0
    assert timers.peek(LOW, 0) is None
    timers.arm(slots(), LOW, 0)


def test_sessions_at_both_ends_of_time() -> None:
    sessions = session_table()
    timers = SessionTimers(sessions, 2**61)
    keys = sessions.keys.intern_int64(times(1, 2))
    _, armed = sessions.add(keys, times(-(2**61), 2**61), 2**61, LOW, 2**61, [(times(0, 0), None)])
    timers.arm(armed, LOW, 2**61)
    fired, over = timers.advance(LOW, 0, 2**61)
    assert (fired.tolist(), over.tolist()) == ([0], [])
    fired, over = timers.advance(0, TOP, 2**61)
    assert (fired.tolist(), over.tolist()) == ([1], [0, 1])


@pytest.mark.parametrize("between", [[], [10], [10, 13]], ids=str)
def test_a_session_that_fired_at_its_last_ms_goes_after_its_lateness(between: list[int]) -> None:
    sessions = session_table()
    timers = SessionTimers(sessions, 100)
    _, armed = sessions.add(sessions.keys.intern_int64(times(1)), times(0), 10, LOW, 5, [(times(0), None)])
    timers.arm(armed, LOW, 5)
    before = LOW
    for watermark in (8, 9, *between, 14):
        fired, over = timers.advance(before, watermark, 5)
        assert fired.tolist() == ([0] if watermark == 9 else []), f"at {watermark}"
        assert over.tolist() == ([0] if watermark == 14 else []), f"at {watermark}"
        if watermark < 14:
            timers._check(watermark, 5)
        before = watermark


def test_what_does_not_fit_is_refused() -> None:
    sessions = session_table()
    with pytest.raises(ValueError, match="width"):
        SessionTimers(sessions, 0)
    with pytest.raises(TypeError, match="sessions"):
        SessionTimers(None, 1)
    timers = SessionTimers(sessions, 1)
    with pytest.raises(IndexError, match="slots"):
        timers.arm(slots(0), LOW, 0)
    with pytest.raises(ValueError, match="lateness"):
        timers.arm(slots(), LOW, -1)
    with pytest.raises(ValueError, match="lateness"):
        timers.advance(LOW, 0, 2**62)
    with pytest.raises(ValueError, match=r"dtype|Buffer"):
        timers.arm(np.zeros(1, np.int64), LOW, 0)
