"""A plan as JSON and back; a damaged document is never taken for a plan."""

import json
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.core.errors import UsageError
from slackwater.core.records import StreamRecord
from slackwater.core.sink import BackfillDirectory, Cut
from slackwater.operations.action import Action, Precondition
from slackwater.operations.actions.batches import PlanBatch, ReplayBatches, ReplaySettings
from slackwater.operations.actions.generations import BuildGeneration, CopyGeneration, StartGeneration
from slackwater.operations.actions.outputs import CutSink, RunIntoDirectory
from slackwater.operations.actions.switching import SwitchGeneration, VerifyGeneration
from slackwater.operations.goals.goal import GOALS
from slackwater.operations.plan.document import DIGEST, digest_of, parse, render, start_command
from slackwater.operations.plan.plan import Cost, Kept, Plan, PlannedFacts, Request, SourceStart, Work, undo_of
from tests.support.errors import raises_code

texts = st.text(max_size=8)
names = st.from_regex(r"[a-z]{1,5}/[a-z]{1,5}", fullmatch=True)
identifiers = st.from_regex(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}", fullmatch=True).filter(str.isascii)
numbers = st.integers(-1, 2**62)
optional = st.none() | numbers
groups = st.builds(
    ReplaySettings, numbers, numbers, st.none() | st.dictionaries(st.text(string.ascii_letters, max_size=4), texts)
)
logs = st.dictionaries(texts, texts, max_size=2)
starts = st.builds(SourceStart, texts, texts, logs, st.none() | logs, texts)
cuts = st.builds(
    Cut, numbers, st.lists(numbers).map(tuple), st.lists(texts).map(tuple), numbers, optional, st.none() | texts
)


@st.composite
def action_lists(draw: st.DrawFn) -> tuple[Action, ...]:
    one: st.SearchStrategy[Action] = st.one_of(
        st.builds(BuildGeneration, numbers, texts, numbers, numbers, optional),
        st.builds(ReplayBatches, numbers, numbers, numbers, st.lists(groups, max_size=2).map(tuple)),
        st.builds(PlanBatch, numbers, numbers),
        st.builds(StartGeneration, numbers, texts, numbers, st.lists(starts, max_size=2).map(tuple)),
        st.builds(CopyGeneration, numbers, numbers, texts, numbers, optional, optional),
        st.builds(VerifyGeneration, numbers, numbers, numbers, optional, optional),
        st.builds(CutSink, cuts),
        st.builds(RunIntoDirectory, numbers, st.dictionaries(texts, texts), st.builds(BackfillDirectory, texts, texts)),
        st.builds(SwitchGeneration, numbers, numbers),
    )
    return tuple(draw(st.lists(one, max_size=6)))


works = st.builds(Work, *[numbers] * 3, *[optional] * 3, numbers)
costs = st.builds(Cost, numbers, works, works, numbers, st.builds(Kept, numbers, *[optional] * 3), optional)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    leader = draw(one_plan())
    return replace(leader, downstream=tuple(draw(st.lists(one_plan(), max_size=2))))


@st.composite
def one_plan(draw: st.DrawFn) -> Plan:
    actions = draw(action_lists())
    return Plan(
        id=draw(identifiers),
        stream=draw(names),
        made_at=draw(texts),
        request=draw(
            st.builds(
                Request,
                st.sampled_from(sorted(GOALS)),
                texts,
                texts,
                optional,
                query_read=st.booleans(),
                starts=st.lists(starts, max_size=2).map(tuple),
            )
        ),
        target=draw(texts),
        facts=draw(
            st.builds(
                PlannedFacts,
                **dict.fromkeys(("state", "written", "pending", "retention_ms", "delay_ms"), optional),
                **dict.fromkeys(("planned", "committed", "target", "contributing", "watermark_ms"), numbers),
                notes=st.lists(texts).map(tuple),
                adopted=st.none() | texts,
            )
        ),
        preconditions=tuple(draw(st.lists(st.builds(Precondition, action=numbers, expected=texts), max_size=3))),
        actions=actions,
        cost=draw(costs),
        risks=tuple(draw(st.lists(texts, max_size=2))),
        undo=undo_of(actions),
        downstream=(),
    )


@settings(max_examples=100, deadline=None)
@given(plans())
def test_a_plan_survives_the_round_trip(plan: Plan) -> None:
    assert parse(render(plan), "plan.json") == plan


@pytest.mark.parametrize(
    ("recorded", "of_plan", "command"),
    [
        ("app.py", "app.py", "slackwater run app.py"),
        ("app.py", "only_the_query.py", "start the query again; its checkpoint is /checkpoint"),
        ("", "", "start the query again; its checkpoint is /checkpoint"),
    ],
)
@settings(max_examples=5, deadline=None)
@given(plan=plans())
def test_only_a_recorded_program_is_started_again(plan: Plan, recorded: str, of_plan: str, command: str) -> None:
    stream = StreamRecord("watched", "hourly", {}, "append", recorded)
    request = replace(plan.request, pipeline_file=of_plan)
    plan = replace(plan, request=request, facts=replace(plan.facts, adopted="/checkpoint"))

    assert start_command(plan, stream, ()) == command


@settings(max_examples=20, deadline=None)
@given(plans())
def test_the_document_is_canonical(plan: Plan) -> None:
    document = json.loads(render(plan))

    assert render(parse(render(plan), "plan.json")) == render(plan)
    assert list(document) == sorted(document)
    # Spaces and the order of fields are not part of the plan.
    assert parse(json.dumps(dict(reversed(document.items()))), "plan.json") == plan


@settings(max_examples=200, deadline=None)
@given(plans(), st.data())
def test_a_changed_byte_is_noticed(plan: Plan, data: st.DataObject) -> None:
    text = render(plan).encode()
    position = data.draw(st.integers(0, len(text) - 1))
    changed = bytes([*text[:position], data.draw(st.integers(32, 126)), *text[position + 1 :]])

    try:
        found = parse(changed.decode(), "plan.json")
    except (UsageError, UnicodeDecodeError):
        return
    assert found == plan


@settings(max_examples=200, deadline=None)
@given(plans(), st.data())
def test_without_one_of_its_fields_it_is_no_plan(plan: Plan, data: st.DataObject) -> None:
    document = json.loads(render(plan))
    part = _part(document, data.draw(st.sampled_from(_places(document))))
    # The schema's absence has a code of its own.
    missing = data.draw(st.sampled_from(sorted(set(part) - {"schema"})))
    del part[missing]

    # Signing writes the digest.
    assert _code_of(_signed(document)) == ("plan-damaged" if missing != DIGEST else None)


@settings(max_examples=100, deadline=None)
@given(plans(), st.data())
def test_with_a_field_that_is_not_known_it_is_no_plan(plan: Plan, data: st.DataObject) -> None:
    document = json.loads(render(plan))
    _part(document, data.draw(st.sampled_from(_places(document))))["location"] = "/etc"

    assert _code_of(_signed(document)) == "plan-damaged"


@settings(max_examples=100, deadline=None)
@given(plans(), st.sampled_from(["5", 5.0, True, [5], {}, 10**30, -(10**30)]), st.data())
def test_with_a_value_of_another_type_it_is_no_plan(plan: Plan, value: object, data: st.DataObject) -> None:
    document = json.loads(render(plan))
    place = data.draw(st.sampled_from(["facts", "cost"]))
    field = data.draw(st.sampled_from({"facts": ["planned", "target"], "cost": ["rows_recorded"]}[place]))
    document[place][field] = value

    assert _code_of(_signed(document)) == "plan-damaged"


@pytest.mark.parametrize("identifier", ["", "../../../../x", "20260105T093000-1a2b3c/..", "20260105T093000-1A2B3C\n"])
@settings(max_examples=5, deadline=None)
@given(plan=plans())
def test_an_id_that_is_no_name_of_a_folder(plan: Plan, identifier: str) -> None:
    assert _code_of(_signed(json.loads(render(plan)) | {"id": identifier})) == "plan-damaged"


@pytest.mark.parametrize("stream", ["", "x", "a/b/c", "/", "../x/y"])
@settings(max_examples=5, deadline=None)
@given(plan=plans())
def test_a_stream_that_is_no_name(plan: Plan, stream: str) -> None:
    code = _code_of(_signed(json.loads(render(plan)) | {"stream": stream}))

    # A name of two parts can only be looked up, and is then unknown.
    assert code == (None if stream.count("/") == 1 else "plan-damaged")


@settings(max_examples=5, deadline=None)
@given(plans())
def test_a_plan_of_another_version_says_what_to_do(plan: Plan) -> None:
    with raises_code(UsageError, "plan-schema", found="slackwater.plan/2", says="slackwater plan rebuild"):
        parse(render(plan).replace("slackwater.plan/1", "slackwater.plan/2"), "plan.json")


def _signed(document: dict[str, Any]) -> str:
    """The document with the digest of what it says now: anybody can compute a SHA-256."""
    content = {name: value for name, value in document.items() if name != DIGEST}
    return json.dumps(content | {DIGEST: digest_of(content)})


def _code_of(text: str) -> str | None:
    try:
        parse(text, "plan.json")
    except UsageError as error:
        return error.code
    return None


def _places(document: dict[str, Any]) -> list[tuple[str | int, ...]]:
    """Where the document has objects with fixed fields."""
    lists = [(name, index) for name in ("actions", "preconditions", "undo") for index in range(len(document[name]))]
    return [(), ("facts",), ("cost",), ("cost", "apply"), ("request",), *lists]


def _part(document: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        document = document[step]
    return document
