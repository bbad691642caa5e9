"""Session windows with a fixed gap: one row of state for each session."""
