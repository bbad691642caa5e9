"""The same windows on several engines: ``python -m bench.engines``."""
