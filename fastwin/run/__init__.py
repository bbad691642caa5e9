"""Runs a spec: the planner, streams, bounded tables, results, and the test harness."""
