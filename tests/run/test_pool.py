import os
import threading
import time

import pytest

from fastwin.run import pool
from fastwin.run.pool import each_on

PATIENCE_S = 60.0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("calls", [0, 1, 2, 7, 100])
def test_it_is_map(threads, calls):
    with each_on(threads) as each:
        found = list(each(lambda a, b: (a, b), range(calls), range(100, 10_000)))
    assert found == [(i, 100 + i) for i in range(calls)]


@pytest.mark.parametrize("threads", [2, 4])
def test_so_many_threads_take_part_and_the_callers_is_one_of_them(threads):
    together = threading.Barrier(threads, timeout=PATIENCE_S)
    with each_on(threads) as each:
        found = each(lambda _: (together.wait(), threading.get_ident())[1], range(threads))
    assert len(set(found)) == threads
    assert threading.get_ident() in found


def test_the_next_run_has_the_same_threads():
    def of_one_run():
        together = threading.Barrier(2, timeout=PATIENCE_S)
        with each_on(2) as each:
            return set(each(lambda _: (together.wait(), threading.get_ident())[1], range(2)))

    assert of_one_run() == of_one_run()


def test_runs_at_the_same_time_have_threads_of_their_own():
    together = threading.Barrier(4, timeout=PATIENCE_S)
    found, problems = [], []

    def of_one_run():
        try:
            with each_on(2) as each:
                found.extend(each(lambda _: (together.wait(), threading.get_ident())[1], range(2)))
        except BaseException as problem:
            problems.append(problem)

    runs = [threading.Thread(target=of_one_run) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(PATIENCE_S)
    assert not problems
    assert len(set(found)) == 4
    assert len(pool._kept) <= threading.active_count()


def test_what_has_not_begun_when_a_call_fails_is_left_out():
    begun = []

    def call(at):
        begun.append(at)
        time.sleep(0.001)
        if at == 3:
            raise ValueError("the fourth")
        return at

    with each_on(2) as each, pytest.raises(ValueError, match="the fourth"):
        each(call, range(1_000))
    assert len(begun) < 500
    with each_on(2) as each:
        assert list(each(abs, range(5))) == list(range(5))


def test_of_calls_that_fail_it_is_the_first_one_whose_error_comes_out():
    together, last_failed = threading.Barrier(2, timeout=PATIENCE_S), threading.Event()

    def call(at):
        together.wait()
        if at == 0:
            assert last_failed.wait(PATIENCE_S)
            time.sleep(0.01)  # the other error is noted by now
        last_failed.set()
        raise ValueError(f"call {at}")

    with each_on(2) as each, pytest.raises(ValueError, match="call 0"):
        each(call, range(2))


def test_an_error_of_another_thread_comes_out():
    caller, together = threading.get_ident(), threading.Barrier(2, timeout=PATIENCE_S)

    def call(_):
        together.wait()
        if threading.get_ident() != caller:
            raise KeyError("there")

    with each_on(2) as each, pytest.raises(KeyError, match="there"):
        each(call, range(2))


def test_calls_may_share_calls_themselves():
    with each_on(2) as each:
        found = each(lambda a: list(each(lambda b: (a, b), range(3))), range(4))
    assert found == [[(a, b) for b in range(3)] for a in range(4)]


def test_arguments_go_with_their_call():
    class Large:
        living = 0

        def __init__(self):
            Large.living += 1

        def __del__(self):
            Large.living -= 1

    with each_on(2) as each:
        left = each(lambda _: Large.living, (Large() for _ in range(50)))
    assert min(left) <= 2
    assert Large.living == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    with each_on(2) as each:
        each(abs, range(10))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            together = threading.Barrier(2, timeout=PATIENCE_S)
            with each_on(2) as each:
                each(lambda _: together.wait(), range(2))
            os.write(write, b"both")
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        assert answer.read() == b"both"
    os.waitpid(child, 0)
