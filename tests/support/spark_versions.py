"""What tests need to know of the version of Spark that they run on."""

import pyspark
import pytest

__all__ = ["SPARK", "columnar_input", "newest", "second_format", "time_type"]

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

second_format = pytest.mark.skipif(SPARK < (4, 1), reason="no newer Spark reads the second format of 4.0")
time_type = pytest.mark.skipif(SPARK < (4, 1), reason="TIME came with Spark 4.1")
columnar_input = pytest.mark.skipif(SPARK < (4, 2), reason="columns of a scan reach Python as columns from 4.2 on")
newest = pytest.mark.skipif(SPARK < (4, 3), reason="no older Spark reads a checkpoint that 4.3 has written")
