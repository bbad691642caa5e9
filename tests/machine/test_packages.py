"""What the package's metadata asks for, held against what is installed."""

import pytest

import fastwin as fw
from fastwin.machine import packages
from fastwin.machine.packages import Need, explained, fits, needs_of, parse

METADATA = [
    "numpy>=2.0",
    'pyspark<5,>=4.0; extra == "spark"',
    "pandas (>=2.2,<3) ; extra == 'spark'",
    'redis[hiredis]>=5; extra == "redis"',
    'fastwin[redis]; extra == "serve"',
    'starlette>=0.40; extra == "serve"',
    'fastwin[serve,spark]; extra == "all"',
]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions by package name, in place of those of this environment."""
    versions: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in versions:
            raise packages.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "requires", lambda name: METADATA)
    return versions


@pytest.mark.parametrize(("text", "need"), [
    ("numpy>=2.0", Need("numpy", ">=2.0")),
    ("tzdata", Need("tzdata", "")),
    ('pyspark<5,>=4.0; extra == "spark"', Need("pyspark", ">=4.0,<5", (), "spark")),
    ("pandas (>=2.2,<3) ; extra == 'spark'", Need("pandas", ">=2.2,<3", (), "spark")),
    ('redis[hiredis]>=5; extra == "redis"', Need("redis", ">=5", ("hiredis",), "redis")),
    ("", None),
])  # fmt: skip
def test_a_requirement_is_read(text: str, need: Need | None) -> None:
    assert parse(text) == need


@pytest.mark.parametrize(("found", "limits", "does"), [
    ("4.3.0", ">=4.0,<5", True),
    ("4.0", ">=4.0.0,<5", True),
    ("3.5.4", ">=4.0,<5", False),
    ("5.0.0.dev1", ">=4.0,<5", False),
    ("10.1", ">=9", True),
    ("1.0", "!=1.0", False),
    ("1.0", "==1.0", True),
    ("1.0", "<=0.9", False),
    ("1.0", ">1.0", False),
    ("anything", "", True),
])  # fmt: skip
def test_a_version_fits(found: str, limits: str, does: bool) -> None:
    assert fits(found, limits) is does


def test_needs_of_an_extra_are_those_of_its_extras_too() -> None:
    assert [need.name for need in needs_of(None, METADATA)] == ["numpy"]
    assert [need.name for need in needs_of("all", METADATA)] == ["redis", "starlette", "pyspark", "pandas"]
    assert needs_of("unknown", METADATA) == []


def test_the_installed_fastwin_says_what_it_needs() -> None:
    assert {"numpy", "pyarrow"} <= {need.name for need in needs_of()}
    assert {"pyspark", "pandas"} <= {need.name for need in needs_of("spark")}


def test_an_import_that_fails_says_all_that_is_missing_and_the_command(installed: dict[str, str]) -> None:
    installed["pyspark"] = "3.5.4"
    told = explained("spark_glue", "spark", ImportError("cannot import name 'TimerValues'"))
    assert isinstance(told, fw.NotInstalledError) and isinstance(told, ImportError)
    assert str(told) == (
        "spark_glue: needs pyspark >=4.0,<5, and 3.5.4 is installed; and the package pandas: pip install 'fastwin[spark]'"
    )


def test_an_extra_that_is_needed_now(installed: dict[str, str]) -> None:
    with pytest.raises(fw.NotInstalledError, match=r"^demo: needs the package redis: pip install 'fastwin\[redis\]'$"):
        packages.check_extra("demo", "redis")
    installed["redis"] = "5.1"
    packages.check_extra("demo", "redis")


def test_another_problem_stays_what_it_is(installed: dict[str, str]) -> None:
    installed |= {"pyspark": "4.1.0", "pandas": "2.3.0"}
    for problem in (AttributeError("x"), ModuleNotFoundError("no", name="fastwin.nothing"), ImportError("no name")):
        assert explained("spark_glue", "spark", problem) is problem
    missing = explained("spark_glue", "spark", ModuleNotFoundError("no", name="py4j.java_gateway"))
    assert str(missing) == "spark_glue: needs the package py4j: pip install 'fastwin[spark]'"
