"""Tumbling, sliding and cumulative windows: one row of state for each (key, slice)."""
