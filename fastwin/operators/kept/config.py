"""KeptConfig: what an operator that keeps rows is told."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from fastwin.columns.decoding import decoded
from fastwin.operators.config import Config

__all__ = ["KeptConfig"]


@dataclass(frozen=True)
class KeptConfig(Config):
    """The Config of an operator that keeps rows. kept: the columns of these. columns: the schema of the main result."""

    kept: pa.Schema | None = None
    columns: pa.Schema | None = None

    @cached_property
    def main_schema(self) -> pa.Schema:
        assert self.columns is not None
        return self.columns

    @property
    def kept_schema(self) -> pa.Schema:
        """The columns of rows that are kept."""
        assert self.kept is not None
        return self.kept

    def kept_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns what is kept of elements."""
        columns = [decoded(rows.column(name)) for name in self.kept_schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self.kept_schema)
