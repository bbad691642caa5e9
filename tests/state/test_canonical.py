"""The same input over the same state gives the same bytes, whether a stream has lived on or was rebuilt from its log."""

import random

import pytest

import fastwin as fw
from tests.support import newer_specs, stored_specs, stored_streams
from tests.support.newer_specs import JOIN, joined_rows
from tests.support.seeds import seed
from tests.support.stored_steps import Step, rebuilt, run, steps
from tests.support.variants import variants

ROUNDS = 3
SPECS = stored_specs.SPECS | newer_specs.SPECS


def follow(spec: fw.WindowSpec, made: list[Step], dice: random.Random, schema=stored_streams.SCHEMA) -> None:
    """Takes steps with a stream that lives on, with a fresh one each time, and with one that now and then is behind."""
    live, other, known = rebuilt(spec, [], schema), rebuilt(spec, [], schema), 0
    log: list[bytes] = []
    for step in made:
        fresh = rebuilt(spec, log, schema)
        then = dice.choice(["live on", "live on", "rebuild", "catch up"])
        if then == "rebuild":
            other, known = rebuilt(spec, log, schema), len(log)
        elif then == "catch up" and known < len(log):
            other.catch_up(log[known:])
            known = len(log)
        told = run(live, step)
        assert run(fresh, step) == told
        if known == len(log):
            assert run(other, step) == told
            known += 1
        log.append(told)
    assert rebuilt(spec, log, schema).snapshot() == live.snapshot()


@pytest.fixture
def dice() -> random.Random:
    return random.Random(seed())


@pytest.mark.parametrize("name", variants(SPECS, *[*SPECS][1::3]))
def test_a_delta_follows_from_input_and_state(name, dice):
    for _ in range(ROUNDS):
        follow(SPECS[name], steps(dice, 8), dice)


def test_a_delta_of_a_join_follows_from_input_and_state(dice):
    for _ in range(ROUNDS):
        made = [step._replace(rows=joined_rows(step.rows)) for step in steps(dice, 8)]
        follow(JOIN.spec, made, dice, JOIN.schema)
