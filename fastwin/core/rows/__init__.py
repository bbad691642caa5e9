"""Rows of 8-byte cells: where all state of the fast operators lies."""
