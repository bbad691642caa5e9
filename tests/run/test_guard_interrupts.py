"""Signal handlers that call the stream that is read, and interrupts at any point of a call: no stream is locked after."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fastwin as fw
from fastwin.operators import config, eventtime
from fastwin.operators.general import savedobjects, state
from fastwin.run import guard, stream
from fastwin.run.replica import open_replica
from fastwin.state import chain
from tests.support.stored_specs import EveryOther
from tests.support.streams import BASE, COUNT, rows, table

DATA = table(("a", 1, 1))


@pytest.mark.parametrize("call", ["snapshot", "process", "restore"])
def test_a_call_in_the_middle_of_a_reading_is_refused(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler or __del__ makes it, in the thread that reads."""
    one = COUNT.open(schema=DATA.schema)
    saved, told, seen = one.snapshot(), [], []
    calls = {"snapshot": one.snapshot, "process": lambda: one.process(DATA), "restore": lambda: one.restore([saved])}
    sizes = stream._LOOKS["sizes"]

    def handled(owner: Any) -> Any:
        seen.append(one._guard.look(one, "sizes", "not known"))
        try:
            calls[call]()
        except fw.StateError as problem:
            told.append(str(problem))
        return sizes(owner)

    monkeypatch.setitem(stream._LOOKS, "sizes", handled)
    thread = threading.Thread(target=lambda: one.metrics, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it waits for itself"
    assert seen == ["not known"]
    assert told == [
        f"stream: {call}() was called by code that runs while a number is read, such as a signal handler; it takes no "
        f"call until the number is there"
    ]
    calls[call]()


def test_a_reading_that_fails_lets_calls_in(monkeypatch: pytest.MonkeyPatch) -> None:
    one = COUNT.open(schema=DATA.schema)

    def fails(owner: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(stream._LOOKS, "sizes", fails)
        with pytest.raises(KeyboardInterrupt):
            _ = one.metrics
    one.process(DATA)
    assert one.metrics.state_rows == 1


def interrupting(
    at: int, left: list[int], files: Sequence[str] = (guard.__file__,)
) -> Callable[[FrameType, str, Any], Any]:
    """Returns a trace function that raises at the ``at``-th place in files where an interrupt can come."""
    seen = 0
    sources = {file: Path(file).read_text().split("\n") for file in files}

    def trace(frame: FrameType, event: str, told: Any) -> Any:
        nonlocal seen
        if (source := sources.get(frame.f_code.co_filename)) is None:
            return None
        # Python looks for signals at calls, not between a finally and the attribute that is set there.
        if event == "call" or "(" in source[frame.f_lineno - 1]:
            seen += 1
            if seen == at:
                left.append(frame.f_lineno)
                raise KeyboardInterrupt
        return trace

    return trace


@pytest.fixture
def untraced() -> Iterator[None]:
    before = sys.gettrace()
    yield
    sys.settrace(before)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("looked", [False, True])
def test_an_interrupt_at_any_point_leaves_no_stream_locked(looked: bool) -> None:
    places = 0
    while True:
        one = COUNT.open(schema=DATA.schema)
        saved, left = one.snapshot(), []
        if looked:
            one._guard._asked.add("sizes")
        sys.settrace(interrupting(places + 1, left))
        try:
            one.process(DATA)
        except KeyboardInterrupt:
            assert left
        finally:
            sys.settrace(None)
        one.restore([saved])
        assert rows(one.process(DATA)) == []
        assert rows(one.advance_watermark(fw.MAX_TIMESTAMP)) == [("a", 0, 10, 1)]
        if not left:
            break
        places += 1
    assert places >= 8


SAVING = [one.__file__ for one in (guard, stream, chain, config, eventtime, state, savedobjects)]
GENERAL = COUNT.trigger(fw.ContinuousEventTimeTrigger.of(5))
KEEPING = BASE.trigger(EveryOther()).evictor(fw.CountEvictor.of(9)).aggregate(n=fw.Count())


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("call", ["snapshot", "delta"])
@pytest.mark.parametrize("replica", [False, True], ids=["stream", "replica"])
@pytest.mark.parametrize("spec", [COUNT, GENERAL, KEEPING], ids=["panes", "general", "elements"])
def test_an_interrupt_loses_no_chunk_without_a_word(spec: fw.WindowSpec, replica: bool, call: str) -> None:
    """Either the stream says that it failed, or what it writes next goes on from what has been handed out."""
    places = failed = 0
    while True:
        one = open_replica(fw.plan(spec, DATA.schema)) if replica else spec.open(schema=DATA.schema)
        chunks, left = [one.snapshot()], []
        one.process(DATA)
        sys.settrace(interrupting(places + 1, left, SAVING))
        try:
            chunks.append(getattr(one, call)())
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        if not left:
            break
        places += 1
        if one._failed is not None:
            with pytest.raises(fw.StateError, match="KeyboardInterrupt"):
                one.delta()
            failed += 1
            continue
        chunks.append(one.delta())
        again = spec.open(schema=DATA.schema)
        again.restore(chunks)
        assert rows(again.advance_watermark(fw.MAX_TIMESTAMP)) == rows(one.advance_watermark(fw.MAX_TIMESTAMP)), left
    assert places > failed > 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
def test_real_interrupts_leave_no_stream_locked() -> None:
    one = COUNT.open(schema=DATA.schema)
    saved, interrupts = one.snapshot(), 0

    def handler(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for i in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 20e-6 + i * 1e-6)
                for _ in range(50):
                    one.advance_watermark(i)
                    _ = one.metrics
                time.sleep(0.5)
            except KeyboardInterrupt:
                interrupts += 1
            one.restore([saved])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 200
