"""Panes of aligned windows: slices of time, their rows, and windows put together from them."""
