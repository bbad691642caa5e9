"""Which public name is on which page of the reference. A name that is on none fails the build, and a test."""

import re
from pathlib import Path

__all__ = ["EXAMPLES", "PAGES", "examples", "missing", "pages"]

EXAMPLES = Path(__file__).with_name("examples.md")
"""An example for each name whose docstring has none."""

# By page: its title, what it is for, and the names, with the modules where users find them.
PAGES: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "specs": (
        "Specifications",
        "Say what to compute. `key_by` starts a specification; each method of it returns a new one.",
        {"fastwin": ["key_by", "WindowSpec", "named"]},
    ),
    "windows": (
        "Windows",
        "Assigners say in which windows an element is.",
        {
            "fastwin": [
                "TumblingEventTimeWindows",
                "SlidingEventTimeWindows",
                "CumulativeEventTimeWindows",
                "CalendarEventTimeWindows",
                "EventTimeSessionWindows",
                "DynamicEventTimeSessionWindows",
                "TumblingProcessingTimeWindows",
                "SlidingProcessingTimeWindows",
                "CumulativeProcessingTimeWindows",
                "ProcessingTimeSessionWindows",
                "DynamicProcessingTimeSessionWindows",
                "GlobalWindows",
                "WindowAssigner",
                "MergingWindowAssigner",
                "TimeWindow",
                "GlobalWindow",
                "MIN_TIMESTAMP",
                "MAX_TIMESTAMP",
            ]
        },
    ),
    "triggers": (
        "Triggers and evictors",
        "A trigger says when a window fires. An evictor takes elements out of it.",
        {
            "fastwin": [
                "EventTimeTrigger",
                "ProcessingTimeTrigger",
                "CountTrigger",
                "ContinuousEventTimeTrigger",
                "ContinuousProcessingTimeTrigger",
                "DeltaTrigger",
                "ProcessingTimeoutTrigger",
                "PurgingTrigger",
                "NeverTrigger",
                "after_watermark",
                "any_of",
                "all_of",
                "Trigger",
                "TriggerResult",
                "CountEvictor",
                "TimeEvictor",
                "DeltaEvictor",
                "Evictor",
            ]
        },
    ),
    "functions": (
        "Functions and state",
        "Functions of your own, and what they keep.",
        {
            "fastwin": [
                "AggregateFunction",
                "ReduceFunction",
                "ProcessWindowFunction",
                "Row",
                "ValueStateDescriptor",
                "ListStateDescriptor",
                "MapStateDescriptor",
                "ReducingStateDescriptor",
                "AggregatingStateDescriptor",
            ]
        },
    ),
    "aggregates": (
        "Aggregates",
        "What is computed for each key and window, in C.",
        {
            "fastwin": [
                "Count",
                "Sum",
                "Mean",
                "Min",
                "Max",
                "Variance",
                "StdDev",
                "Skewness",
                "Kurtosis",
                "Covar",
                "Corr",
                "Quantile",
                "Median",
                "Histogram",
                "CountDistinct",
                "HyperLogLog",
                "TopK",
                "Mode",
                "First",
                "Last",
                "FirstArrived",
                "LastArrived",
                "ArgMin",
                "ArgMax",
                "Largest",
                "Smallest",
                "Collect",
                "CollectSet",
                "StringAgg",
                "BitAnd",
                "BitOr",
                "BitXor",
                "BoolAnd",
                "BoolOr",
                "NumpyAggregate",
                "Aggregate",
                "hyperloglog",
            ]
        },
    ),
    "running": (
        "Streams and results",
        "What runs a specification in the process, and what comes back.",
        {"fastwin": ["Stream", "Result", "Metrics", "Timeline", "WhyReport", "WhyWindow", "Plan", "plan"]},
    ),
    "joins": (
        "Joins",
        "Two inputs, matched by key and window.",
        {"fastwin": ["window_join", "co_group", "JoinSpec", "JoinStream"]},
    ),
    "spark": (
        "Spark",
        "The same specifications over Spark frames.",
        {
            "spark_glue": [
                "session",
                "apply",
                "ParquetFiles",
                "route",
                "to_folder",
                "to_database",
                "to_store",
                "StoreSink",
                "why",
                "inspect",
                "export_state",
                "rescale",
                "progress_listener",
                "batch_metrics",
                "counters",
                "metrics_listener",
                "BatchMetrics",
                "prometheus_listener",
                "doctor",
                "Findings",
                "Finding",
            ]
        },
    ),
    "store": (
        "Stores",
        "Panes in RocksDB or Redis, for windows that are put together when they are read.",
        {
            "fastwin.store": [
                "PaneStore",
                "RocksStore",
                "RedisStore",
                "Layout",
                "Meta",
                "Revision",
                "Written",
                "key_from_text",
                "key_to_text",
                "keys_to_text",
            ]
        },
    ),
    "testing": (
        "Testing",
        "For tests of windows.",
        {"fastwin.testing": ["WindowHarness", "Emission", "PendingTimer"]},
    ),
    "errors": (
        "Errors",
        "Each is a `FastwinError`, and names the argument, its value and the limit.",
        {
            "fastwin": [
                "FastwinError",
                "SpecError",
                "BadRowError",
                "StateError",
                "StoreError",
                "StoreUnavailableError",
                "NotInstalledError",
                "SketchError",
                "SourceError",
                "AggregateOverflowError",
                "UserFunctionError",
            ]
        },
    ),
}

_BEGIN = (
    "Examples in Python begin with these lines. Those for Spark are parts of "
    "[On Spark](../spark.md), [Sources and settings on Spark](../settings.md), [State on Spark](../state.md), "
    "[Changing and moving a query](../changing.md) and [A store and a page](../store.md)."
)

_LINES = "Examples begin with [these lines](index.md#the-lines-before-each-example)."

# What a built-in trigger answers is for the operator alone.
_OPTIONS = {"triggers": 'filters: ["!^_", "!^(clear|can_merge|on_.*)$"]'}


def examples() -> dict[str, str]:
    """Returns the code of EXAMPLES by name; with the name ``""``, the lines that all of them begin with."""
    first, *others = EXAMPLES.read_text(encoding="utf-8").split("\n## ")
    found = {"": first} | {name: text for name, _, text in (other.partition("\n") for other in others)}
    code = {name: re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) for name, text in found.items()}
    return {name: blocks[0] for name, blocks in code.items() if blocks}


def _block(page: str, name: str, example: str | None) -> str:
    options = "" if name.endswith(".Trigger") else _OPTIONS.get(page, "")
    block = f"::: {name}\n" + (f"    options:\n      {options}\n" if options else "") + "\n"
    return block if example is None else f"{block}Example:\n\n```python\n{example}```\n\n"


def pages() -> dict[str, str]:
    """Returns the Markdown of each page of the reference, by its path below docs/."""
    made, code = {}, examples()
    begin = f"{_BEGIN}\n\n```python\n{code['']}```\n"
    for name, (title, purpose, modules) in PAGES.items():
        names = [f"{module}.{one}" for module, names in modules.items() for one in names]
        made[f"reference/{name}.md"] = f"# {title}\n\n{purpose} {_LINES}\n\n" + "".join(
            _block(name, one, code.get(one)) for one in names
        )
    contents = [f"- [{title}]({name}.md): {purpose}" for name, (title, purpose, _) in PAGES.items()]
    made["reference/index.md"] = (
        "# Reference\n\nEvery public name, from the code itself. Search finds each by its name.\n\n"
        + "\n".join(contents)
        + f"\n\n## The lines before each example\n\n{begin}"
    )
    return made


def missing(module: str, public: list[str]) -> list[str]:
    """Returns those of a module's public names that are on no page, and those on a page that are not public."""
    on_pages = {one for _, _, modules in PAGES.values() for one in modules.get(module, [])}
    return sorted({one for one in public if not one.startswith("__")} ^ on_pages)
