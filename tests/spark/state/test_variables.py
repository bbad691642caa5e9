"""Names and types that checkpoints have: they stay as they are."""

import pytest

from spark_glue.state.variables import (
    CHUNK_KEY,
    CHUNK_VALUE,
    CHUNKS,
    CLOCKS,
    HEAD,
    HEAD_TYPE,
    WAITING,
    WAITING_TYPE,
    clocks_type,
    inputs_of,
)


def test_names() -> None:
    assert (HEAD, CHUNKS, CLOCKS, WAITING) == ("head", "chunks", "inputs", "waiting")
    assert [kind.simpleString() for kind in (HEAD_TYPE, CHUNK_KEY, CHUNK_VALUE, WAITING_TYPE)] == [
        "struct<head:binary>",
        "struct<chunk:bigint>",
        "struct<data:binary>",
        "struct<event:bigint,processing:bigint,timer:bigint>",
    ]
    assert clocks_type(2).names == ["newest_0", "heard_0", "newest_1", "heard_1", "seen", "watermark", "next"]


@pytest.mark.parametrize("inputs", [1, 2, 5])
def test_the_number_of_inputs_is_told_by_a_value(inputs: int) -> None:
    assert inputs_of(range(len(clocks_type(inputs)))) == inputs
