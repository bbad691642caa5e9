"""Parts of the state of several streams, of different keys, as the chunks of one new stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from fastwin.state.chunks import Chunk, Link, decode, encode, id_of
from fastwin.state.reading import Owner

__all__ = ["gathered"]

_TIMES = ("watermark", "newest", "cleaned", "processing_time", "fed")
_OF_A_LOG = ("refreshed", "changed")  # what a log of deltas needs


def gathered(parts: list[bytes], owner: Owner) -> list[bytes]:
    """Returns the parts as deltas that go on from each other, all with the latest times of any.

    Raises StateError for chunks that are none, or of another spec.
    """
    chunks = [decode(part, owner.fingerprint, owner.text) for part in parts]
    latest = {
        name: max(found)
        for name in _TIMES
        if (found := [chunk.meta[name] for chunk in chunks if chunk.meta.get(name) is not None])
    }
    if chunks and all("columns" in chunk.tables for chunk in chunks):
        latest.pop("fed", None)  # all their rows are numbered anew
    previous, blobs, arrived = "", [], 0
    for number, chunk in enumerate(chunks, 1):
        if "columns" in chunk.tables:  # rows that are kept, which their arrival tells from each other
            chunk, arrived = _arriving(chunk, arrived)
            latest["fed"] = max(latest.get("fed", 0), arrived)
        meta = {name: value for name, value in chunk.meta.items() if name not in _OF_A_LOG} | latest
        if "whole" in meta:
            meta["whole"] = False  # others come beside it
        # All parts are needed until their windows have gone; none tells of those before it.
        blob = encode(replace(chunk, kind="delta", meta=meta, link=Link(number, previous, 1)), owner.fingerprint)
        previous = id_of(blob)
        blobs.append(blob)
    return blobs


def _arriving(chunk: Chunk, begin: int) -> tuple[Chunk, int]:
    """Returns a chunk whose rows arrive from a number on, in their order and one by one, and the number behind them."""
    rows = chunk.tables["rows"]
    end = begin + rows.num_rows
    arrivals = np.empty(rows.num_rows, dtype=np.int64)
    arrivals[np.argsort(rows["arrival"].to_numpy(), kind="stable")] = np.arange(begin, end)
    rows = rows.set_column(rows.column_names.index("arrival"), "arrival", pa.array(arrivals))
    return replace(chunk, tables={**chunk.tables, "rows": rows}), end
