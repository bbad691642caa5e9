"""Aligned and session windows in lockstep with the naive model, on random specs and streams."""

import copy
import random
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run import bounded
from tests.support.cases import MANY, Case, cases
from tests.support.lockstep import Lockstep, assert_empty, assert_rows_agree, emitted, main_rows, step


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
    with mock.patch.multiple(bounded, _CACHED_ROWS=piece, _WHOLE_ROWS=whole):
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
