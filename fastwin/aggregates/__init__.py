"""The aggregates that a spec names."""
