"""State that an earlier version has stored is restored, and goes on as it did there."""

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.state.chunks import FORMAT_VERSION
from tests.support import newer_specs
from tests.support.stored_specs import SPECS
from tests.support.stored_streams import SAVED, SCHEMA, STORED, feed, folder_of, main_rows

FORMATS = (4, 5)
NEWER_FORMATS = (5,)
"""That there have been since there are the newer specs."""
EXPECTED = STORED / "state"
VERSION, FINGERPRINT = slice(4, 6), slice(8, 24)  # of the bytes of a chunk


def chunks_of(name: str, version: int = FORMATS[0]) -> list[bytes]:
    return [(folder_of(version) / f"{name}.{saved}").read_bytes() for saved in SAVED]


def restored(spec: fw.WindowSpec, name: str, version: int = FORMATS[0]) -> fw.Stream:
    stream = spec.open(schema=SCHEMA)
    stream.restore(chunks_of(name, version))
    return stream


def assert_expected(found: pa.Table, name: str) -> None:
    expected = pa.ipc.open_file(EXPECTED / f"{name}.expected.arrow").read_all()
    assert found.schema == expected.schema
    assert found.num_rows == expected.num_rows > 0
    for column, wanted in zip(found.columns, expected.columns, strict=True):
        assert column.is_null().equals(wanted.is_null())
        values = wanted.drop_null().to_pylist()
        is_float = pa.types.is_floating(wanted.type)
        assert column.drop_null().to_pylist() == (pytest.approx(values, rel=1e-12) if is_float else values)


@pytest.mark.parametrize("version", FORMATS)
def test_each_spec_is_stored(version: int) -> None:
    found = {path.name.partition(".")[0] for path in folder_of(version).iterdir()}
    assert found - {"events"} == set(SPECS)
    assert {chunk[VERSION] for name in SPECS for chunk in chunks_of(name, version)} == {version.to_bytes(2, "little")}


def test_the_format_that_is_written_is_stored() -> None:
    assert max(FORMATS) == FORMAT_VERSION, "store it: python -m tests.support.stored_specs"
    assert max(NEWER_FORMATS) == FORMAT_VERSION, "store it: python -m tests.support.newer_specs"


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("name", SPECS)
def test_a_stream_goes_on(name: str, version: int) -> None:
    stream = restored(SPECS[name], name, version)
    assert_expected(main_rows(feed(stream, len(SAVED))), name)
    assert {chunk[FINGERPRINT] for chunk in chunks_of(name, version)} == {SPECS[name].fingerprint}


@pytest.mark.parametrize("name", SPECS)
def test_a_stream_is_saved_again(name: str) -> None:
    """What is saved after a restore has all of what was restored."""
    stream = restored(SPECS[name], name)
    chunks = [stream.snapshot(), stream.delta()]
    again = SPECS[name].open(schema=SCHEMA)
    again.restore(chunks)
    assert_expected(main_rows(feed(again, len(SAVED))), name)


@pytest.mark.parametrize("name", SPECS)
def test_a_stream_opens_without_a_schema(name: str) -> None:
    """The columns of the input are part of the state."""
    stream = SPECS[name].open()
    stream.restore(chunks_of(name))
    assert_expected(main_rows(feed(stream, len(SAVED))), name)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.lateness_ms])
def test_a_longer_lateness_takes_the_state(name: str) -> None:
    """The spec has another fingerprint then; the parts of the stored one are compared in words."""
    longer = SPECS[name].allowed_lateness("1 hour", coalesce=SPECS[name].coalesce)
    assert longer.fingerprint != SPECS[name].fingerprint
    assert restored(longer, name).metrics.state_rows == restored(SPECS[name], name).metrics.state_rows > 0


def newer_chunks_of(name: str, version: int) -> list[bytes]:
    return [(newer_specs.folder_of(version) / f"{name}.{saved}").read_bytes() for saved in SAVED]


@pytest.mark.parametrize("version", NEWER_FORMATS)
def test_each_newer_spec_is_stored(version: int) -> None:
    found = {path.name.partition(".")[0] for path in newer_specs.folder_of(version).iterdir()}
    assert found == set(newer_specs.STREAMS)
    chunks = [chunk for name in newer_specs.STREAMS for chunk in newer_chunks_of(name, version)]
    assert {chunk[VERSION] for chunk in chunks} == {version.to_bytes(2, "little")}


@pytest.mark.parametrize("version", NEWER_FORMATS)
@pytest.mark.parametrize("name", newer_specs.STREAMS)
def test_a_stream_of_a_newer_spec_goes_on(name: str, version: int) -> None:
    """As one that has taken all events."""
    whole, stream = newer_specs.opened(name), newer_specs.opened(name)
    for batch in range(len(SAVED)):
        newer_specs.fed(name, whole, batch)
    stream.restore(newer_chunks_of(name, version))
    found, expected = (
        [sorted(map(repr, result.main.to_pylist())) for result in newer_specs.fed(name, one, len(SAVED))]
        for one in (stream, whole)
    )
    assert found == expected
    assert any(found)
