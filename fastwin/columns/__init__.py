"""Arrow in and out: checked rows, buffers, keys, values, and the row that user code sees."""
