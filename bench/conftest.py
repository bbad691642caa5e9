"""Fixtures: the race, and what goes into the JSON beside the times."""

import os
from collections import defaultdict
from typing import Any

import pytest

from bench import host, scale
from bench.race import Race, recorded_clock

_LOAD = pytest.StashKey[float | None]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LOAD] = host.load()
    try:
        scale.chosen()
    except ValueError as problem:
        raise pytest.UsageError(str(problem)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "race" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.benchmark(timer=recorded_clock))


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    machine_info.pop("node", None)
    machine_info["versions"] = host.versions()
    machine_info["cores"] = os.cpu_count()
    machine_info["peer_threads"] = scale.PEER_THREADS
    machine_info["load_at_start"] = config.stash[_LOAD]


@pytest.fixture(scope="session")
def _races(request: pytest.FixtureRequest) -> Race:
    selected = defaultdict(list)
    for item in request.session.items:
        params = getattr(item, "callspec", None) and item.callspec.params
        if params and "work" in params:
            selected[params["work"].name].append(params["contender"])
    return Race(scale.chosen(), selected)


@pytest.fixture
def race(_races: Race, benchmark: Any) -> Any:
    """Returns ``race(work, contender, *resources)``; resources are handed to the work's ``make``."""

    def report(work: Any, contender: str, *resources: Any) -> None:
        _races.report(work, contender, benchmark, *resources)

    return report
