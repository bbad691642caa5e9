"""A folder of Parquet files: files are closed again, and those that are not whole are told from those out of reach."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_glue.sources.folder import Folder, is_not_whole


def open_files(folder) -> list[str]:
    held = []
    for number in os.listdir("/proc/self/fd"):
        try:
            held.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of the listing
            continue
    return [path for path in held if path.startswith(str(folder))]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no /proc")
def test_a_file_is_closed_when_it_has_been_read(tmp_path):
    pq.write_table(pa.table({"a": range(10)}), tmp_path / "a.parquet")
    folder = Folder(str(tmp_path))
    for new_file in (lambda: folder.open("a.parquet"), lambda: folder.open_same(folder.found()[0])):
        with new_file() as file:
            assert file.read().num_rows == 10
            assert len(open_files(tmp_path)) == 1
        assert open_files(tmp_path) == []


def test_what_is_not_whole_is_told_from_what_is_out_of_reach(tmp_path):
    folder = tmp_path / "deserialize thrift"
    folder.mkdir()
    pq.write_table(pa.table({"a": range(10)}), folder / "a.parquet")
    whole = (folder / "a.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for damaged in (b"", whole[:4], whole[:-1], whole[: -8 - footer] + b"\xff" * footer + whole[-8:]):
        (folder / "a.parquet").write_bytes(damaged)
        with pytest.raises((pa.ArrowInvalid, OSError)) as told:
            Folder(str(folder)).open("a.parquet")
        assert is_not_whole(told.value)
    (folder / "a.parquet").unlink()
    (folder / "a.parquet").mkdir()
    with pytest.raises(OSError, match="deserialize thrift") as told:
        Folder(str(folder)).open("a.parquet")
    assert not is_not_whole(told.value)
