"""Behind the windows: several sinks of one frame, and panes into a store."""
