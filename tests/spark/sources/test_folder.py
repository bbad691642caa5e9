"""A folder of Parquet files: files are closed again, and those that are not whole are told from those out of reach."""

import os
import socket
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import spark_glue
from fastwin.errors import SourceError, SpecError
from spark_glue.sources.folder import LISTED_BY_JOB, LISTED_BY_STREAM, Folder, Found, is_not_whole, shown_path
from spark_glue.sources.listing import Limits, Listing, first_offset


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


def test_a_file_whose_name_is_no_text_is_left_out_with_a_warning(tmp_path, caplog):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    for name in (b"\xff.parquet", b"_\xff.parquet", b"\xff.txt"):
        try:
            (tmp_path / os.fsdecode(name)).touch()
        except OSError:
            pytest.skip("the file system takes names in UTF-8 alone")
    folder = Folder(str(tmp_path))
    for _ in range(2):
        assert [one.name for one in folder.found()] == ["a.parquet"]
    name = rb"b'\xff.parquet'".decode()
    assert caplog.messages == [f"{tmp_path}: the file {name} is left out: its name is no UTF-8; rename it"]
    assert spark_glue.ParquetFiles(str(tmp_path)).folder().found()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("s3://AKIA:SECRET@bucket/x", "s3://...@bucket/x"),
        ("s3://AKIA:SEC/RET@bucket/x", "s3://...@bucket/x"),
        ("abfss://AKIA@bucket/x", "abfss://...@bucket/x"),
        ("s3://AKIA:/SECRET@bucket/x", "s3://...@bucket/x"),
        ("s3://AKIA:1/SECRET@bucket/x", "s3://...@bucket/x"),
        ("s3://AKIA:SECRET@bucket/day@1", "s3://...@bucket/day@1"),
        ("s3://AKIA:SEC/RET@bucket/day@1", "s3://...@bucket/day@1"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("hdfs://namenode:8020/data/a@b", "hdfs://namenode:8020/data/a@b"),
        ("hdfs://user@namenode:8020/a@b", "hdfs://...@namenode:8020/a@b"),
        ("file:///a@b", "file:///a@b"),
        ("/a:b@c", "/a:b@c"),
    ],
)
def test_keys_in_a_uri_are_not_shown(path, shown):
    assert shown_path(path) == shown


def test_keys_in_a_uri_are_in_no_text(monkeypatch):
    uri = "s3://AKIA:SECRET@bucket/x"
    nowhere = SimpleNamespace(from_uri=lambda path: (fs.LocalFileSystem(), "/nowhere/at/all"))
    given = SimpleNamespace(FileSystem=nowhere, FileSelector=fs.FileSelector, FileType=fs.FileType)
    monkeypatch.setattr("spark_glue.sources.folder.fs", given)
    files = spark_glue.ParquetFiles(uri)
    assert repr(files).startswith("ParquetFiles(path='s3://...@bucket/x', schema=None, ")
    folder = files.folder()
    assert folder.path == uri
    with pytest.raises(SourceError, match=r"there is no folder s3://\.\.\.@bucket/x; make it"):
        folder.found()
    for call in (folder.open_same, lambda one: Listing(folder, Limits(None, None, 0)).check({})):
        with pytest.raises(SourceError, match=r"^s3://\.\.\.@bucket/x") as told:
            call(ONE)
        assert "SECRET" not in str(told.value)


def test_a_store_of_objects_has_no_empty_folders(tmp_path, monkeypatch):
    """So a stream begins where nothing is yet, and all at once, or on a disk, it is a mistake."""
    files = fs._MockFileSystem()
    local = fs.LocalFileSystem()
    found = {"mock://bucket/x": (files, "bucket/x"), "file:///nowhere/at/all": (local, "/nowhere/at/all")}
    nowhere = SimpleNamespace(from_uri=found.__getitem__)
    given = SimpleNamespace(FileSystem=nowhere, FileSelector=fs.FileSelector, FileType=fs.FileType)
    monkeypatch.setattr("spark_glue.sources.folder.fs", given)
    folder = Folder("mock://bucket/x", LISTED_BY_STREAM)
    assert folder.found() == []
    for uri, listed in (("mock://bucket/x", LISTED_BY_JOB), ("file:///nowhere/at/all", LISTED_BY_STREAM)):
        with pytest.raises(SourceError, match=f"there is no folder {uri}"):
            Folder(uri, listed).found()
    files.create_dir("bucket/x")
    with files.open_output_stream("bucket/x/a.parquet") as file:
        pq.write_table(pa.table({"a": [1]}), file)
    assert [one.name for one in folder.found()] == ["a.parquet"]


def test_keys_in_a_uri_that_is_none_are_not_shown():
    with pytest.raises(SpecError, match=r"got '(s3://\.\.\.@bucket/x)': Cannot parse URI: '\1'") as told:
        spark_glue.ParquetFiles("s3://AKIA:SEC RET@bucket/x")
    assert "RET" not in str(told.value)


ONE = Found(77, "a.parquet", 1_234)


@pytest.mark.parametrize(
    ("listed", "mend"),
    [
        (
            LISTED_BY_STREAM,
            "put it back as it was (1,234 bytes, changed at 77 ns since 1970), or begin with an empty ch",
        ),
        (LISTED_BY_JOB, "put it whole, or remove it, and call apply again"),
    ],
    ids=["stream", "all at once"],
)
def test_a_damaged_file_is_told_from_a_store_that_does_not_answer(tmp_path, listed, mend):
    """A stream never goes on without a file that a micro-batch was begun with."""
    folder = Folder(str(tmp_path), listed)
    for problem in (
        pa.ArrowInvalid("no\nmagic"),
        OSError("Couldn't deserialize thrift: x"),
        pa.ArrowNotImplementedError("x"),
    ):
        said = str(folder.unreadable(ONE, problem))
        assert said.startswith(f"{tmp_path}/a.parquet: it cannot be read: ")
        assert f"; {mend}" in said
        assert "\n" not in said
    said = str(folder.unreadable(ONE, OSError("AWS Error NETWORK_CONNECTION: curlCode: 28, Timeout was reached")))
    assert said.startswith(f"{tmp_path}/a.parquet: reading has failed on {socket.gethostname()}: AWS Error")
    assert "if its store was out of reach, start again when it is back; if the file is damaged, " in said
    assert mend in said


def test_a_local_file_that_is_not_there_may_be_so_on_this_machine_alone(tmp_path):
    with pytest.raises(SourceError, match=rf"the file is gone since .*; that is on {socket.gethostname()}: driver and"):
        Folder(str(tmp_path)).open_same(ONE)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"the file has changed since .*, or begin with an empty checkpoint$"):
        Folder(str(tmp_path)).open_same(ONE)


class Coarse:
    """Tells the time of a file that it is asked for in whole seconds, and in a listing with fractions."""

    def __init__(self, files: fs.FileSystem) -> None:
        self._files = files

    def __getattr__(self, name: str):
        return getattr(self._files, name)

    def get_file_info(self, asked):
        info = self._files.get_file_info(asked)
        if isinstance(asked, str) and info.mtime_ns is not None:
            info = fs.FileInfo(info.path, info.type, size=info.size, mtime_ns=info.mtime_ns // 10**9 * 10**9)
        return info


def test_a_store_that_tells_times_in_whole_seconds_has_the_file_that_it_has_listed(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    os.utime(tmp_path / "a.parquet", ns=(0, 77_123_000_000))
    folder = Folder(str(tmp_path))
    real = folder._files
    folder._files = Coarse(real)
    (one,) = folder.found()
    assert one.time_ns == 77_123_000_000
    assert folder.look("a.parquet") != one
    assert folder.is_same(one)
    folder.open = lambda name: pq.ParquetFile(tmp_path / name)
    with folder.open_same(one) as file:
        assert file.metadata.num_rows == 1
    known = Listing(folder, Limits(None, None, 0))
    assert [told[0] for told in known.next(first_offset())["files"]] == ["a.parquet"]
    for time_ns in (76_999_000_000, 78_000_000_000):
        os.utime(tmp_path / "a.parquet", ns=(0, time_ns))
        assert not folder.is_same(one)
    folder._files = real
    for time_ns, same in ((77_123_000_000, True), (77_124_000_000, False)):
        os.utime(tmp_path / "a.parquet", ns=(0, time_ns))
        assert folder.is_same(one) == same
    (tmp_path / "a.parquet").unlink()
    assert not folder.is_same(one)
