"""Which plans need no more than groups, where all rows are at hand: windows that are a slice each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.run.planner import Plan

__all__ = ["grouped"]


def grouped(plan: Plan, parts: Iterable[pa.RecordBatch]) -> Plan:
    """Returns the plan for all the rows that there will ever be, given in parts: that of GroupsOperator, or the same.

    Dictionaries stay, because each of their values is looked up once, and so do keys of which one is null.
    """
    if plan.operator != AlignedOperator.name:
        return plan
    slicing = plan.slicing()
    if slicing.shared or slicing.grid is None:
        return plan
    if any(pa.types.is_dictionary(field.type) for field in plan.config.codec.fields):
        return plan
    if any(part.column(name).null_count for part in parts for name in plan.spec.keys):
        return plan
    return replace(plan, operator=GroupsOperator.name)
