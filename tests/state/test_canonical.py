"""The same input over the same state gives the same bytes, whether a stream has lived on or was rebuilt from its log."""

import random

import pytest

from tests.support.stored_specs import SPECS
from tests.support.stored_steps import rebuilt, run, steps

ROUNDS = 3


@pytest.mark.parametrize("name", SPECS)
def test_a_delta_follows_from_input_and_state(name):
    seed = random.randrange(1 << 30)
    print("seed", seed)  # shown if it fails
    dice, spec = random.Random(seed), SPECS[name]
    for _ in range(ROUNDS):
        live, other, known = rebuilt(spec, []), rebuilt(spec, []), 0
        log: list[bytes] = []
        for step in steps(dice, 8):
            fresh = rebuilt(spec, log)
            then = dice.choice(["live on", "live on", "rebuild", "catch up"])
            if then == "rebuild":
                other, known = rebuilt(spec, log), len(log)
            elif then == "catch up" and known < len(log):
                other.catch_up(log[known:])
                known = len(log)
            told = run(live, step)
            assert run(fresh, step) == told
            if known == len(log):
                assert run(other, step) == told
                known += 1
            log.append(told)
        assert rebuilt(spec, log).snapshot() == live.snapshot()
