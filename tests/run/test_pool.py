"""Calls that threads share: their order, their errors, and the threads that stay for the next run."""

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from fastwin.run import pool
from fastwin.run.pool import each_on
from tests.support.forks import in_a_child

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def no_threads_are_kept() -> None:
    """Those of other tests may be more than are asked for here, and then it may be any of them that take part."""
    kept = pool._kept.pop(None, None)
    if kept is not None:
        kept[1].shutdown()


def threads_of(count: int, parties: int | None = None, together: threading.Barrier | None = None) -> set:
    """The threads that take part in a run on so many; they are all there at the same time."""
    parties = parties or count
    together = together or threading.Barrier(parties, timeout=PATIENCE_S)
    with each_on(count) as each:
        return set(each(lambda _: (together.wait(), threading.current_thread())[1], range(parties)))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("calls", [0, 1, 2, 7, 100])
def test_it_is_map(threads: int, calls: int) -> None:
    with each_on(threads) as each:
        found = list(each(lambda a, b: (a, b), range(calls), range(100, 10_000)))
    assert found == [(i, 100 + i) for i in range(calls)]


@pytest.mark.parametrize("threads", [2, 4])
def test_so_many_threads_take_part_and_the_callers_is_one_of_them(threads: int) -> None:
    found = threads_of(threads)
    assert len(found) == threads
    assert threading.current_thread() in found


def test_the_next_run_has_the_same_threads() -> None:
    threads = threads_of(3)
    assert threads_of(3) == threads
    assert threads_of(2) < threads
    assert threads_of(3) == threads
    assert not threads_of(5) & (threads - {threading.current_thread()})
    for thread in threads - {threading.current_thread()}:  # more are asked for, so these end
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_runs_at_the_same_time_have_threads_of_their_own_of_which_one_runs_stay() -> None:
    threads_of(2)
    together, found, problems = threading.Barrier(4, timeout=PATIENCE_S), [], []

    def run() -> None:
        try:
            found.append(threads_of(2, 2, together) - {threading.current_thread()})
        except BaseException as problem:
            problems.append(problem)

    runs = [threading.Thread(target=run) for _ in range(2)]
    for one in runs:
        one.start()
    for one in runs:
        one.join(PATIENCE_S)
    assert not problems
    (one,), (other,) = found
    assert one is not other
    (stays,) = threads_of(2) - {threading.current_thread()}
    gone = {one: other, other: one}[stays]
    gone.join(PATIENCE_S)
    assert not gone.is_alive()


def test_what_has_not_begun_when_a_call_fails_is_left_out() -> None:
    begun, failed = [], threading.Event()

    def call(at: int) -> None:
        begun.append(at)
        if at == 3:
            failed.set()
            raise ValueError("the fourth")
        if at > 3:
            assert failed.wait(PATIENCE_S)
            time.sleep(0.01)

    with pytest.raises(ValueError, match="the fourth"), each_on(2) as each:
        each(call, range(1_000))
    assert len(begun) < 1_000
    with each_on(2) as each:
        assert list(each(abs, range(5))) == list(range(5))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(ValueError, KeyError, ValueError), (ValueError, KeyboardInterrupt, KeyboardInterrupt)],
)
def test_of_calls_that_fail_the_first_ones_error_comes_out_or_what_interrupts(
    first: type, second: type, expected: type
) -> None:
    together, failed = threading.Barrier(2, timeout=PATIENCE_S), threading.Event()

    def call(at: int) -> None:
        together.wait()
        if at == 0:
            assert failed.wait(PATIENCE_S)
            time.sleep(0.01)  # the other error is noted by now
            raise first
        failed.set()
        raise second

    with pytest.raises(expected), each_on(2) as each:
        each(call, range(2))


def test_an_error_of_another_thread_comes_out() -> None:
    caller, together = threading.get_ident(), threading.Barrier(2, timeout=PATIENCE_S)

    def call(_: int) -> None:
        together.wait()
        if threading.get_ident() != caller:
            raise KeyError("there")

    with pytest.raises(KeyError, match="there"), each_on(2) as each:
        each(call, range(2))


class Large:
    """Something that one can see go."""


class FailedError(Exception):
    """Another one."""


def test_a_run_that_fails_leaves_nothing() -> None:
    made: list[weakref.ref] = []

    def failure(at: int) -> FailedError:
        made.append(weakref.ref(found := FailedError(at)))
        return found

    def call(at: int, fails: bool) -> Large:
        if fails:
            raise failure(at)
        made.append(weakref.ref(found := Large()))
        return found

    gc.collect()
    gc.disable()
    try:
        with each_on(2) as each:
            try:
                each(call, range(8), [False] * 7 + [True])
            except FailedError:
                pass
            assert len(made) == 8
            assert not [one for one in made if one() is not None]
    finally:
        gc.enable()


def test_threads_of_a_run_that_fails_end_with_it() -> None:
    threads = threads_of(2) - {threading.current_thread()}
    with pytest.raises(ValueError, match="here"), each_on(2):
        raise ValueError("here")
    assert not [thread for thread in threads if thread.is_alive()]


def test_an_interrupt_while_others_are_waited_for_ends_when_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    together, go_on, over = threading.Barrier(2, timeout=PATIENCE_S), threading.Event(), []
    caller = threading.get_ident()

    def call(_: int) -> None:
        together.wait()
        if threading.get_ident() != caller:
            assert go_on.wait(PATIENCE_S)
            over.append(True)

    def interrupted(_: object) -> None:
        threading.Timer(0.05, go_on.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr("fastwin.run.pool.wait", interrupted)
    with pytest.raises(KeyboardInterrupt), each_on(2) as each:
        each(call, range(2))
    assert over


def test_calls_may_share_calls_themselves() -> None:
    with each_on(2) as each:
        found = each(lambda a: list(each(lambda b: (a, b), range(3))), range(4))
    assert found == [[(a, b) for b in range(3)] for a in range(4)]


def test_arguments_go_with_their_call() -> None:
    living: weakref.WeakSet = weakref.WeakSet()

    def large() -> Large:
        living.add(found := Large())
        return found

    with each_on(2) as each:
        left = list(each(lambda _: len(living), (large() for _ in range(50))))
    assert min(left) <= 2
    assert not living


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    threads_of(2)
    before = threading.active_count()
    act: Callable[[], object] = lambda: threads_of(2)  # noqa: E731
    in_a_child(act)
    assert threading.active_count() == before
