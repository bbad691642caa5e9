"""Shares that wander between executors that come and go: what is kept has a bound, and nothing is lost."""

from dataclasses import replace

import pytest

from bench.simulation import QUICK, losses_text, run

SCALE = replace(
    QUICK, batches=48, shares=32, active=32, executors=4, wander=0.1, lose=11, budget=700_000, copies=500_000
)


@pytest.fixture(scope="module")
def seen():
    return run(SCALE, 8, lambda line: None)  # raises unless each event was counted once in each window


@pytest.mark.long
def test_an_executor_stays_within_its_budgets(seen):
    points, _ = seen
    most = max(one.live[1] for one in points)
    # The ledger counts to the byte what tasks put away; the budget is used, and never passed.
    assert SCALE.budget / 2 < most <= SCALE.budget
    assert max(one.shelf[1] for one in points) <= SCALE.copies


def test_a_commit_costs_what_changes(seen):
    points, _ = seen
    early, late = points[2], points[-1]
    assert late.commit[0] < 1.3 * early.commit[0]
    assert late.log < 1.5 * early.log
    assert late.rows < 1.2 * early.rows


def test_a_lost_executor_costs_what_it_had(seen):
    _, losses = seen
    assert len(losses) == (SCALE.batches - 1) // SCALE.lose
    real = [loss for loss in losses if loss.shares]
    assert real
    assert all(0 < loss.read < loss.shares * 100_000 for loss in real)  # a share's log has about 30,000 bytes
    (line,) = losses_text(losses)
    assert f"{len(real)} executors lost" in line
