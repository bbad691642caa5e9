"""Windows of the general operator: one row for each (key, window)."""
