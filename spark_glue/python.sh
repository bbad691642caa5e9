#!/bin/sh
# Runs the Python that FASTWIN_PYTHON names, without the archives that Spark puts first on its path: see interpreter.py.
for archive in pyspark.zip 'py4j-*-src.zip'; do
  PYTHONPATH="${PYTHONPATH#"$FASTWIN_PYSPARK"/python/lib/$archive:}"
done
exec "$FASTWIN_PYTHON" "$@"
