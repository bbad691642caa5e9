"""What all tests share: how hard hypothesis tries, and how JVMs compile.

HYPOTHESIS_PROFILE chooses `dev` (quick, new examples every time), `ci` (the same ones every time) or `long` (many new
ones); without it, FASTWIN_LONG chooses `long`, and a set CI variable `ci`. Tests marked `long` are skipped unless
FASTWIN_LONG is set.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.jvm import JVM_OPTIONS, submit_options

# No deadlines: the first example of a test may import or compile, and a checked build is slow.
_COMMON = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("dev", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=60, derandomize=True, **_COMMON)
settings.register_profile("long", max_examples=400, **_COMMON)
_usual = "long" if os.environ.get("FASTWIN_LONG") else "ci" if os.environ.get("CI") else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or _usual)

# What this machine says of Spark is not for the tests.
for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
    os.environ.pop(name, None)
os.environ.setdefault("SPARK_SUBMIT_OPTS", submit_options())
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", JVM_OPTIONS)

# The files that take long come first: so, of several processes, none waits long for another at the end.
_LONG_FILES = Path(__file__).resolve().parent / "spark"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _LONG_FILES not in item.path.parents)
    if os.environ.get("FASTWIN_LONG"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="`make test-long` runs it"))
