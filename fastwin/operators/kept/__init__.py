"""Windows that keep rows: as columns, matched and ranked when windows fire."""
