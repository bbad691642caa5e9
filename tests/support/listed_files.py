"""Files of a folder with times of their own, as a stream lists them."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spark_glue.sources.folder import Folder
from spark_glue.sources.listing import Limits, Listing, Offset, files_of

__all__ = ["FIRST_S", "listing", "names", "put", "put_bytes", "through_text"]

FIRST_S = 1_600_000_000


def put(folder: Path, name: str, second: int, rows: int = 10) -> None:
    pq.write_table(pa.table({"a": range(rows)}), folder / name)
    os.utime(folder / name, (FIRST_S + second,) * 2)


def put_bytes(folder: Path, name: str, second: int, content: bytes) -> None:
    (folder / name).write_bytes(content)
    os.utime(folder / name, (FIRST_S + second,) * 2)


def listing(folder: Path, **arguments) -> Listing:
    return Listing(Folder(str(folder)), Limits(**{"max_files": None, "max_rows": None, "late_ms": 60_000} | arguments))


def names(offset: Offset) -> list[str]:
    return [one.name for one in files_of(offset)]


def through_text(offset: Offset) -> Offset:
    """As the checkpoint keeps it."""
    return json.loads(json.dumps(offset))
