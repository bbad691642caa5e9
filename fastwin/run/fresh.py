"""Fresh operators of built-in windows, for a table."""

from __future__ import annotations

from typing import cast

from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.eventtime import WatermarkOperator
from fastwin.run.planner import Plan

__all__ = ["new_groups", "new_operator"]


def new_operator(plan: Plan) -> WatermarkOperator:
    """Returns a fresh operator of a plan of built-in windows."""
    return cast(WatermarkOperator, plan.new_operator())


def new_groups(plan: Plan) -> GroupsOperator:
    """Returns a fresh operator of a plan of GroupsOperator."""
    return cast(GroupsOperator, new_operator(plan))
