"""The processor as it is shipped: what Spark asks on the driver costs no imports; elsewhere it is the processor."""

import importlib.util
import pickle
import subprocess
import sys

import pytest
from pyspark import cloudpickle

from spark_glue.plan import firstlook
from spark_glue.stages.operator import WindowProcessor
from spark_glue.stages.shipped import Shipped
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_harness import SCHEMA, SPEC
from tests.support.spark_jobs import frame_plan_for

# What Spark's process on the driver does: it is that module, gets the processor, and lets it ask for its state.
_DRIVER = """
import pickle, sys
from importlib.machinery import ModuleSpec
__spec__ = ModuleSpec("{module}", None)
processor = pickle.loads(sys.stdin.buffer.read())
class Handle:
    def __getattr__(self, name):
        return lambda *arguments: print(name, *arguments)
processor.init(Handle())
processor.close()
print(sorted({{"fastwin", "pandas", "pyarrow"}} & set(sys.modules)))
"""


class _Telling:
    def __getattr__(self, name):
        return lambda *arguments: print(name, *arguments)


@pytest.fixture
def processor():
    return WindowProcessor(frame_plan_for(SCHEMA.empty_table(), SPEC))


def test_spark_is_told_what_state_there_is_without_loading_anything(processor, capsys):
    assert importlib.util.find_spec(firstlook._MODULE) is not None
    shipped = cloudpickle.dumps(Shipped(processor))
    told = subprocess.run(
        [sys.executable, "-c", _DRIVER.format(module=firstlook._MODULE)],
        input=shipped,
        capture_output=True,
        check=True,
        timeout=300,
    )
    processor.init(_Telling())
    asked = capsys.readouterr().out
    assert "head" in asked
    assert told.stdout.decode() == f"{asked}[]\n"


def test_elsewhere_it_is_the_processor(processor):
    shipped = pickle.loads(cloudpickle.dumps(Shipped(processor)))
    shipped.init(FakeHandle())
    assert isinstance(shipped._packed.begun, WindowProcessor)
    assert list(shipped.handleInputRows((-1,), iter([]), None)) is not None
    shipped.close()
