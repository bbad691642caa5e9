"""Key groups: ids that spread evenly over any number of partitions."""

import numpy as np
import pytest
from pyspark.sql import functions as F

from fastwin.errors import SpecError
from spark_glue.plan.keygroups import MAX_KEY_GROUPS, RECORD_ID, check_key_groups, ids, murmur3_int


def test_hash_of_each_id_is_its_number():
    assert murmur3_int(ids(MAX_KEY_GROUPS)).tolist() == list(range(MAX_KEY_GROUPS))


def test_ids_do_not_depend_on_their_number():
    assert ids(3).tolist() == ids(MAX_KEY_GROUPS)[:3].tolist()


def test_ids_are_the_same_for_ever():
    """A checkpoint is keyed by them."""
    assert ids(4).tolist() == [-1693959553, -1910889132, -1382833682, -876271479]


def test_the_record_is_no_key_group():
    assert RECORD_ID not in ids(MAX_KEY_GROUPS)


@pytest.mark.parametrize("value", [1, 64, MAX_KEY_GROUPS, np.int64(7)])
def test_good_numbers(value):
    assert check_key_groups(value) == value


@pytest.mark.parametrize("value", [0, -1, MAX_KEY_GROUPS + 1, 2.0, "64", None, True])
def test_bad_numbers(value):
    with pytest.raises(SpecError, match=r"key_groups: must be .*1 to 32768, got"):
        check_key_groups(value)


def test_hash_is_that_of_spark(spark):
    values = np.concatenate([np.random.default_rng(0).integers(-(2**31), 2**31, 500), [0, -1, 2**31 - 1, -(2**31)]])
    df = spark.createDataFrame([(int(value),) for value in values], "value int").select(
        "value", F.hash("value").alias("hash")
    )
    rows = df.collect()
    assert [row.hash for row in rows] == murmur3_int(np.array([row.value for row in rows], np.int32)).tolist()


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 16])
def test_spark_spreads_them_evenly(spark, partitions):
    df = spark.createDataFrame([(int(i),) for i in ids(64)], "id int")
    numbers = {int(group_id): number for number, group_id in enumerate(ids(64))}
    placed = df.repartition(partitions, "id").select("id", F.spark_partition_id().alias("partition")).collect()
    assert all(row.partition == numbers[row.id] % partitions for row in placed)
