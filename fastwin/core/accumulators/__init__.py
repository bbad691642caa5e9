"""Accumulators: how the cells of a row take values, merge, and give a result."""
