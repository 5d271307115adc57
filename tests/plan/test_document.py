"""A plan as JSON and back; a damaged document is never taken for a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.errors import UsageError
from slackwater.model.plan import (
    Action,
    BuildGeneration,
    Cost,
    CutSink,
    Facts,
    Plan,
    ReplayBatches,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.plan.document import parse, render

texts = st.text(max_size=8)
names = st.from_regex(r"[a-z]{1,5}/[a-z]{1,5}", fullmatch=True)
numbers = st.integers(-1, 2**40)


@st.composite
def action_lists(draw: st.DrawFn) -> tuple[Action, ...]:
    replay = st.builds(ReplayBatches, numbers, numbers)
    cut = st.builds(CutSink, numbers, st.lists(numbers).map(tuple), st.lists(texts).map(tuple), numbers)
    return (
        draw(st.builds(BuildGeneration, numbers, texts, texts, numbers, numbers)),
        *draw(st.lists(replay, max_size=1)),
        draw(st.builds(VerifyGeneration, numbers)),
        *draw(st.lists(cut, max_size=1)),
        draw(st.builds(SwitchGeneration, numbers, numbers)),
    )


facts = st.builds(Facts, retention_ms=st.none() | numbers, state=st.none() | numbers, notes=st.lists(texts).map(tuple))
plans = st.builds(
    Plan,
    stream=names,
    facts=facts,
    cost=st.builds(Cost),
    actions=action_lists(),
    irreversible=st.lists(texts).map(tuple),
    undo=st.lists(texts).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(plans)
def test_a_plan_survives_the_way_there_and_back(plan: Plan) -> None:
    assert parse(render(plan), "plan.json") == plan


@given(plans)
def test_the_schema_comes_first(plan: Plan) -> None:
    assert next(iter(json.loads(render(plan)))) == "schema"


@settings(max_examples=200, deadline=None)
@given(plans, st.data())
def test_without_one_of_its_fields_it_is_no_plan(plan: Plan, data: st.DataObject) -> None:
    document = json.loads(render(plan))
    place = data.draw(st.sampled_from([(), ("facts",), ("cost",), ("actions", 0)]))
    part: Any = document
    for step in place:
        part = part[step]
    # Kinds and the schema are constants with defaults; the schema's absence is told apart.
    gone = data.draw(st.sampled_from([name for name in part if name not in {"kind", "schema"}]))
    del part[gone]

    with pytest.raises(UsageError) as caught:
        parse(json.dumps(document), "plan.json")

    assert caught.value.code == "plan-damaged"


@pytest.mark.parametrize("text", ["", "null", "[]", "1", '"plan"', "{", "{}", '{"schema": null}', "\x00"])
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "plan.json")

    assert caught.value.code in {"plan-unreadable", "plan-schema"}
    assert caught.value.hint is not None


@settings(max_examples=50, deadline=None)
@given(plans, st.randoms(use_true_random=False))
def test_actions_in_another_order_are_no_plan(plan: Plan, random: Any) -> None:
    shuffled = list(plan.actions)
    random.shuffle(shuffled)
    if tuple(shuffled) == plan.actions:
        return

    with pytest.raises(UsageError) as caught:
        parse(render(replace(plan, actions=tuple(shuffled))), "plan.json")

    assert caught.value.code == "plan-damaged"


@given(plans)
def test_actions_that_are_missing_are_noticed(plan: Plan) -> None:
    for needed in (BuildGeneration, VerifyGeneration, SwitchGeneration):
        rest = tuple(action for action in plan.actions if not isinstance(action, needed))
        with pytest.raises(UsageError):
            parse(render(replace(plan, actions=rest)), "plan.json")
