"""What real Flink has answered, we answer."""

import random
from typing import Any

import pytest

from fastwin.testing import WindowHarness
from tests.golden import replay as replaying
from tests.golden.compare import complaints
from tests.golden.scenarios import AGREEING, RIGHT_SUMS, SCENARIOS
from tests.support.variants import variants


def _problems(answer: Any, scenarios: list[dict[str, Any]] = AGREEING) -> list[str]:
    found = []
    for scenario in scenarios:
        found += [f"{scenario['name']}: {line}" for line in complaints(scenario["expected"], answer(scenario))[:2]]
    return found


def test_all_scenarios_are_there() -> None:
    assert len(SCENARIOS) == 529
    assert {scenario["name"] for scenario in SCENARIOS} - {s["name"] for s in AGREEING} == set(RIGHT_SUMS)


def test_flinks_answers() -> None:
    problems = _problems(replaying.replay)
    assert not problems, "\n".join(problems)


def test_flinks_answers_with_built_in_aggregates() -> None:
    problems = _problems(lambda scenario: replaying.replay(scenario, built_in=True))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", RIGHT_SUMS)
def test_no_data_is_lost_where_flink_loses_it(name: str) -> None:
    (scenario,) = [scenario for scenario in SCENARIOS if scenario["name"] == name]
    assert [row["value"] for row in replaying.replay(scenario)["output"]] == RIGHT_SUMS[name]


class RestartingHarness(WindowHarness):
    """Goes on from a snapshot and the deltas after it, at random."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._random = random.Random(7)
        self._chunks: list[bytes | None] = [self.snapshot()]

    def _restart(self) -> None:
        if self._random.random() < 0.1:
            self._chunks = [self.snapshot()]
        elif self._random.random() < 0.7:
            self._chunks.append(self.delta())
            if self._random.random() < 0.5:
                super().restore(*self._chunks)

    def push(self, element: Any) -> Any:
        emitted = super().push(element)
        self._restart()
        return emitted

    def advance_watermark(self, watermark: int) -> Any:
        emitted = super().advance_watermark(watermark)
        self._restart()
        return emitted

    def advance_processing_time(self, processing_time: int) -> Any:
        emitted = super().advance_processing_time(processing_time)
        self._restart()
        return emitted

    def restore(self, *chunks: bytes | None, forget_watermark: bool = False) -> None:
        super().restore(*chunks, forget_watermark=forget_watermark)
        self._chunks = [self.snapshot()]


@pytest.mark.parametrize("built_in", variants([False, True], True))
@pytest.mark.parametrize("part", variants(range(4), 0))
def test_flinks_answers_across_snapshots_and_deltas(monkeypatch: pytest.MonkeyPatch, part: int, built_in: bool) -> None:
    monkeypatch.setattr(replaying, "WindowHarness", RestartingHarness)
    problems = _problems(lambda scenario: replaying.replay(scenario, built_in), AGREEING[part::4])
    assert not problems, "\n".join(problems)


def test_a_wrong_answer_is_noticed() -> None:
    scenario = next(s for s in AGREEING if s["expected"]["output"])
    answer = replaying.replay(scenario)
    for change in (
        {"dropped": 1},
        {"output": answer["output"][1:]},
        {"output": [*answer["output"], answer["output"][0]]},
    ):
        assert complaints(scenario["expected"], {**answer, **change})
