"""The results that are kept: works of several runs stand beside each other if they are of one machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.chart import kind_of
from bench.report import joined, lost, summarise, versions


def contenders(rates: dict[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "rate": rate} for name, rate in rates.items()]


def summary(made: str, cpu: str = "fast", scale: str = "full", **rates: float) -> dict[str, Any]:
    works = [
        {"work": name, "bar": None, "made": made, "contenders": contenders({"fastwin": rate})}
        for name, rate in rates.items()
    ]
    machine = {"cpu": "a brand", "cpu_kind": [cpu], "cores": 2, "peer_threads": 2, "load_at_start": 0.1}
    return {
        "made": made, "commit": {"id": made}, "versions": {"polars": made}, "scale": scale,
        "machine": machine | {"python_version": "3"}, "works": works,
    }  # fmt: skip


def test_works_are_replaced_by_those_measured_since():
    found = joined(summary("monday", one=1, two=2), summary("tuesday", two=3, three=4))
    told = {work["work"]: (work["made"], *(one["rate"] for one in work["contenders"])) for work in found["works"]}
    assert told == {"one": ("monday", 1), "two": ("tuesday", 3), "three": ("tuesday", 4)}
    assert found["made"] == "tuesday"


def test_a_work_keeps_the_run_it_is_of():
    monday, tuesday = summary("monday", one=1), summary("tuesday", two=3)
    (found,) = (work for work in joined(monday, tuesday)["works"] if work["work"] == "one")
    assert (found["commit"], found["versions"], found["load_at_start"]) == ({"id": "monday"}, {"polars": "monday"}, 0.1)
    again = joined(joined(monday, tuesday), summary("wednesday", three=4))
    (found,) = (work for work in again["works"] if work["work"] == "one")
    assert (found["made"], found["commit"]) == ("monday", {"id": "monday"})
    assert versions(again)["polars"] == "wednesday and monday and tuesday"


def test_of_a_work_that_does_not_say_its_run_nothing_is_made_up():
    monday = summary("monday", one=1)
    monday["works"][0]["made"] = "sunday"
    (found,) = (work for work in joined(monday, summary("tuesday", two=3))["works"] if work["work"] == "one")
    assert found["made"] == "sunday"
    assert "commit" not in found


def test_contenders_are_not_lost():
    monday, tuesday = summary("monday", one=1), summary("tuesday", one=2)
    monday["works"][0]["contenders"] = contenders({"fastwin": 1, "polars": 2})
    tuesday["works"][0]["left_out"] = ["DuckDB"]
    assert joined(monday, tuesday)["works"][0]["made"] == "tuesday"  # polars cannot run any more
    tuesday["works"][0]["left_out"] = ["polars", "DuckDB"]
    with pytest.raises(ValueError, match=r"^one: was measured without polars, which are kept of it$"):
        joined(monday, tuesday)


def test_what_a_run_is_without_is_told():
    monday = summary("monday", one=1, two=2)
    monday["works"][0]["contenders"] = contenders({"fastwin": 1, "Redis": 2})
    assert lost(monday, monday) == []
    assert lost(monday, summary("tuesday", one=3)) == ["one: Redis", "two: fastwin"]


def test_a_summary_takes_what_the_json_tells():
    info = {
        "work": "one", "label": "one", "unit": "event", "bar": None, "scale": "quick", "contender": "fastwin",
        "threads": 1, "units": 6, "notes": {}, "available": ["fastwin", "polars"],
    }  # fmt: skip
    raw = {
        "datetime": "monday",
        "machine_info": {"python_version": "3", "versions": {"polars": "2"}, "load_at_start": 0.5},
        "commit_info": {"id": "a", "dirty": False},
        "benchmarks": [{"extra_info": info, "stats": {"min": 1.0, "median": 3.0, "rounds": 5}}],
    }
    (work,) = summarise(raw)["works"]
    assert (work["commit"], work["load_at_start"]) == ({"id": "a", "dirty": False}, 0.5)
    assert work["versions"] == {"Python": "3", "polars": "2"}
    assert work["left_out"] == ["polars"]
    assert [(one["best_s"], one["median_s"], one["rate"]) for one in work["contenders"]] == [(1.0, 3.0, 2.0)]


@pytest.mark.parametrize("other", [{"cpu": "slow"}, {"scale": "quick"}])
def test_works_of_another_machine_or_size_are_left_out(other):
    found = joined(summary("monday", one=1, **other), summary("tuesday", two=3))
    assert [work["work"] for work in found["works"]] == ["two"]


def test_each_peer_that_is_kept_has_a_colour_in_the_chart():
    kept = json.loads((Path(__file__).parents[2] / "bench" / "results" / "latest.json").read_text(encoding="utf-8"))
    peers = {one["name"] for work in kept["works"] for one in work["contenders"]} - {"fastwin"}
    assert {"bare calls of Python", "Redis without fastwin"} <= {kind_of(peer) for peer in peers}
    with pytest.raises(ValueError, match="'unheard of' is of no kind"):
        kind_of("unheard of")
