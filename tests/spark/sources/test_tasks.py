"""Into how many tasks a micro-batch of files is divided: also the same ones when it runs again elsewhere."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spark_glue
from fastwin.errors import SourceError, SpecError
from spark_glue.plan.settings import requested_cores
from spark_glue.sources.listing import Limits

reading = pytest.importorskip("spark_glue.sources.reading", reason="Spark is older than 4.2")
ROWS = reading.TASK_ROWS


def reader(folder, tasks: int):
    job = reading.Job(str(folder), reading.Listed("", "", False), tasks, SimpleNamespace(asks_time=False), False)
    return reading._StreamReader(job, Limits(None, None, 0))


def test_a_micro_batch_that_runs_again_is_divided_as_before(tmp_path):
    pq.write_table(pa.table({"a": range(4 * ROWS)}), tmp_path / "a.parquet", row_group_size=ROWS)
    before = reader(tmp_path, 4)
    start = before.initialOffset()
    end = before.latestOffset(start, before.getDefaultReadLimit())
    assert before.latestOffset(end, before.getDefaultReadLimit()) is end
    stored = json.loads(json.dumps(end))
    for tasks in (4, 1, 100):
        after = reader(tmp_path, tasks)
        assert [part.parts for part in after.partitions(start, stored)] == [
            part.parts for part in before.partitions(start, end)
        ]
        assert len(after.partitions(start, stored)) == 4
    del stored["tasks"]  # of an earlier version
    assert len(reader(tmp_path, 2).partitions(start, stored)) == 2
    assert reader(tmp_path, 2).partitions(stored, stored) == []


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(["a"], 20_000), (["w"], 9_000), (["a", "l"], 9_000), (["wider"], 1_024), (["a", "w", "l", "wider"], 1_024)],
    ids=str,
)
def test_of_wide_rows_fewer_are_decoded_at_once(tmp_path, monkeypatch, columns, rows):
    """What is not read does not count."""
    texts = [f"{i:0200d}" for i in range(20_000)]
    table = pa.table(
        {"a": range(20_000), "w": texts, "l": [[text] for text in texts], "wider": [t * 12 for t in texts]}
    )
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    monkeypatch.setattr(reading, "BATCH_BYTES", 2 << 20)
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        sizes = [batch.num_rows for batch in reading._batches(file, None, None, [0], columns)]
    assert sum(sizes) == 20_000 and rows <= sizes[0] <= rows * 1.2


@pytest.mark.parametrize("offset", [{"logOffset": 3}, 7, {"clicks": {"0": 5}}])
def test_an_offset_of_another_source_is_refused(tmp_path, offset):
    before = reader(tmp_path, 1)
    for call in (
        lambda: before.latestOffset(offset, before.getDefaultReadLimit()),
        lambda: before.partitions(before.initialOffset(), offset),
    ):
        with pytest.raises(SourceError, match=r"the checkpoint was made with another source.*offset is .*empty check"):
            call()


@pytest.mark.parametrize("tasks", [0, -1, 2.0, True, "4"])
def test_a_number_of_tasks_that_is_none_is_refused(tmp_path, tasks):
    with pytest.raises(SpecError, match="tasks: must be an int of at least 1, or None, got"):
        spark_glue.ParquetFiles(str(tmp_path), tasks=tasks)


class Conf(dict):
    def contains(self, key: str) -> bool:
        return key in self


DYNAMIC = {"dynamicAllocation.enabled": "true", "dynamicAllocation.maxExecutors": "20", "executor.cores": "4"}


@pytest.mark.parametrize(
    ("master", "conf", "expected"),
    [
        ("yarn", {}, 2),
        ("yarn", {"executor.instances": "10", "executor.cores": "4"}, 40),
        ("yarn", {"executor.instances": "10"}, 10),
        ("yarn", DYNAMIC, 80),
        ("yarn", DYNAMIC | {"dynamicAllocation.enabled": "false"}, 2),
        ("yarn", DYNAMIC | {"default.parallelism": "2"}, 2),
        ("local[2]", {"executor.instances": "10", "executor.cores": "4"}, 2),
    ],
)
def test_without_a_number_it_is_that_of_the_cores_asked_for(master, conf, expected):
    told = Conf({f"spark.{key}": value for key, value in conf.items()})
    assert requested_cores(SimpleNamespace(master=master, defaultParallelism=2, getConf=lambda: told)) == expected
