"""Benchmarks: fastwin beside naive Python, numpy, pandas, polars, DuckDB, a bare C loop and native Spark."""
