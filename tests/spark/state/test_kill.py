"""A query killed at a random moment, or disturbed in its workers, gives what an undisturbed one gives.

The short version of ``make soak``.
"""

import random

import pytest

from tests.soak.runs import Run, assert_same, batches_of
from tests.soak.workload import spec_of, tables
from tests.support.spark_streams import Source, replay, run_stream

BATCHES = 9
FAULTS = {
    "0": ["kill@packed"],
    "1": ["fail@stored"],
    "2": ["kill@delta written"],
    "3": ["deltas in chunks", "fail@behind", "kill@delta written"],
    "4": ["linger@stored"],
    "5": ["kill@stored"],
    "6": ["spoil", "kill@opened"],  # the next attempt has no stream left standing and looks for files
    "7": ["deltas in heads", "lose@stored"],  # in the first task of the stage of shares; the others find no input
}


@pytest.fixture(scope="module")
def inputs():
    return tables(3, BATCHES)


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory, inputs):
    """Returns what a kind gives in the tests' own session, checked against a run without Spark."""
    known = {}

    def batches(kind: str):
        if kind not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            known[kind] = run_stream(spark, spec_of(kind), inputs, folder, watermark="5 seconds", key_groups=4)
            if "late" in known[kind][0].rows.column_names:
                late = spec_of(kind), inputs, known[kind]
                assert sum(result.late.num_rows for result in replay(*late, coalesce=kind != "user-written")) > 0
        return [batch.rows for batch in known[kind]]

    return batches


@pytest.fixture
def source(tmp_path, inputs) -> Source:
    made = Source(tmp_path, inputs[0].schema)
    made.put(*inputs)
    return made


@pytest.mark.long
@pytest.mark.parametrize("kind", ["user-written"])  # the others: make soak
def test_killed_and_restarted(undisturbed, source, tmp_path, kind):
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    for number in range(5):
        run = Run(kind, source, tmp_path / f"run {number}")
        run.kill(dice, after=dice.randint(1, BATCHES - 2))
        if not run.torn:
            break
    run.finish()
    try:
        assert assert_same(batches_of(run), undisturbed(kind)) > 150
    except AssertionError as problem:
        raise AssertionError(f"seed {seed}, killed after {run.killed_after}: {problem}") from None


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sessions, aggregated first"])
def test_workers_killed_tasks_failed_after_they_wrote_and_files_spoilt(undisturbed, source, tmp_path, kind):
    run = Run(kind, source, tmp_path / "run")
    told = run.finish(FAULTS)
    assert told["spoilt"] > 0
    assert told["stages_again"] >= 2  # packing, and the shares
    assert run.lingered() > 0
    assert run.carried_out() == sorted(fault for faults in FAULTS.values() for fault in faults if "@" in fault)
    assert_same(batches_of(run), undisturbed(kind))
