"""KeptConfig: what an operator that keeps rows is told."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from fastwin.columns.decoding import decoded
from fastwin.operators.config import Config

__all__ = ["KeptConfig"]


@dataclass(frozen=True)
class KeptConfig(Config):
    """The Config of an operator that keeps rows. kept: the columns of these."""

    kept: pa.Schema = field(kw_only=True)

    def kept_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns what is kept of elements."""
        columns = [decoded(rows.column(name)) for name in self.kept.names]
        return pa.RecordBatch.from_arrays(columns, schema=self.kept)
