"""Timers: an ordered set of (time, key, namespace)."""
