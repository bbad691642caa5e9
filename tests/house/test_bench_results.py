"""The results that are kept: works of several runs stand beside each other if they are of one machine."""

from typing import Any

import pytest

from bench.report import joined


def summary(made: str, cpu: str = "fast", scale: str = "full", **rates: float) -> dict[str, Any]:
    works = [{"work": name, "bar": None, "made": made, "contenders": [rate]} for name, rate in rates.items()]
    machine = {"cpu": "a brand", "cpu_kind": [cpu], "cores": 2, "peer_threads": 2, "load_at_start": 0.1}
    return {"made": made, "scale": scale, "machine": machine, "works": works}


def test_works_are_replaced_by_those_measured_since():
    found = joined(summary("monday", one=1, two=2), summary("tuesday", two=3, three=4))
    told = {work["work"]: (work["made"], *work["contenders"]) for work in found["works"]}
    assert told == {"one": ("monday", 1), "two": ("tuesday", 3), "three": ("tuesday", 4)}
    assert found["made"] == "tuesday"


@pytest.mark.parametrize("other", [{"cpu": "slow"}, {"scale": "quick"}])
def test_works_of_another_machine_or_size_are_left_out(other):
    found = joined(summary("monday", one=1, **other), summary("tuesday", two=3))
    assert [work["work"] for work in found["works"]] == ["two"]
