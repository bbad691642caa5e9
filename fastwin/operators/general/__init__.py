"""Every assigner, trigger, evictor and function: one state for each (key, window)."""
