"""Whether a killed query has left an input that cannot be compared, as ``make soak`` asks of its checkpoint."""

from pathlib import Path

import pytest

from tests.soak.runs import Run
from tests.support.spark_events import events
from tests.support.spark_streams import Source


def killed(folder: Path, noted: int, begun: int) -> Run:
    """Returns a run whose source has noted so many files, of which so many micro-batches were begun."""
    run = Run("sliding", Source(folder, events(0, 1).schema), folder / "run")
    for name in ("sources/0", "offsets"):
        (run.checkpoint / name).mkdir(parents=True)
    for number in range(noted):  # the names that Spark gives: each tenth entry holds those before it
        name = f"{number}.compact" if number % 10 == 9 else f"{number}"
        (run.checkpoint / "sources/0" / name).touch()
        (run.checkpoint / "sources/0" / f".{name}.crc").touch()
    for number in range(begun):
        (run.checkpoint / "offsets" / f"{number}").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{number}}}')
    return run


@pytest.mark.parametrize("begun", [0, 1, 8, 9, 10, 19, 20])
def test_a_file_that_was_noted_before_its_micro_batch_tears_the_next_one(tmp_path, begun):
    for name, noted, torn in (("next", begun + 1, True), ("same", begun, False)):
        (tmp_path / name).mkdir()
        assert killed(tmp_path / name, noted, begun).torn is torn
