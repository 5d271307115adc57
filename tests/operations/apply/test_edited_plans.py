"""An edited plan is refused before anything is changed, also with the digest of what it says now."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from slackwater.core.errors import SlackwaterError
from slackwater.operations.plan.document import DIGEST, digest_of, parse, render
from slackwater.operations.plan.plan import Plan
from tests.support.rebuilds import Project, make_project

Document = dict[str, Any]
NOT_DERIVED = {"cost", "risks", "made_at", "id"}
"""What a plan says to people, and its own name: apply works with what it derives itself."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("edited") / "project")


@pytest.fixture(scope="module")
def plan(project: Project) -> Plan:
    return project.plan("batch:3")


def _action(document: Document, kind: str) -> Document:
    return next(action for action in document["actions"] if action["kind"] == kind)


def _cut(document: Document) -> Document:
    cut: Document = _action(document, "cut-sink")["cut"]
    return cut


def _inverse(document: Document, kind: str) -> Document:
    return next(one["inverse"] for one in document["undo"] if one["inverse"]["kind"] == kind)


EDITS: dict[str, Callable[[Document], object]] = {
    "a folder to build in": lambda d: _action(d, "build-generation").update(location="/etc"),
    "an id that is a path": lambda d: d.update(id="../../../../x"),
    "a stream that is a path": lambda d: d.update(stream="../../x"),
    "the live generation": lambda d: _action(d, "build-generation").update(number=1),
    "the live generation to be removed": lambda d: _inverse(d, "remove-generation").update(number=1),
    "another query id": lambda d: _action(d, "build-generation").update(query_id="x"),
    "no preconditions": lambda d: d.update(preconditions=[]),
    "a precondition less": lambda d: d["preconditions"].pop(),
    "a precondition of another action": lambda d: d["preconditions"][0].update(action=5),
    "no files to cut": lambda d: _cut(d).update(files=[]),
    "everything to cut": lambda d: _cut(d).update(after=-1),
    "a kept file to cut": lambda d: _cut(d)["files"].append("part-1.parquet"),
    "a file outside the output": lambda d: _cut(d)["files"].append("../clicks/000.json"),
    "an absolute file": lambda d: _cut(d)["files"].append("/etc/passwd"),
    "another file to restore": lambda d: _inverse(d, "restore-sink")["cut"]["files"].append("../clicks.py"),
    "a batch that is kept": lambda d: _cut(d)["batches"].append(3),
    "a batch without end": lambda d: _action(d, "replay-batches").update(last=10**30),
    "more batches": lambda d: _action(d, "replay-batches").update(last=5),
    "fewer batches": lambda d: _action(d, "replay-batches").update(first=3),
    "other settings": lambda d: _action(d, "replay-batches").update(settings=[]),
    "another generation in use": lambda d: _action(d, "switch-generation").update(new=7),
    "no verification": lambda d: d["actions"].pop(3),
    "no actions": lambda d: d.update(actions=[], undo=[], preconditions=[]),
    "another order": lambda d: d["actions"].reverse(),
    "no undo": lambda d: d.update(undo=[]),
    "another target": lambda d: d.update(target="batch:1"),
    "another request": lambda d: d["request"].update(target="batch:1"),
    "a request that is none": lambda d: d["request"].update(target="batch:x"),
    "another pipeline": lambda d: d.update(pipeline_file="/etc/passwd"),
    "another goal": lambda d: d.update(goal="reset"),
    "another goal for the same batch": lambda d: d.update(goal="replay"),
    "an unknown action": lambda d: d["actions"].append({"kind": "remove-all", "location": "/"}),
}


@pytest.mark.parametrize("signed", [True, False], ids=["digest recomputed", "digest left"])
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_refused_and_nothing_is_changed(project: Project, plan: Plan, name: str, *, signed: bool) -> None:
    document = json.loads(render(plan))
    EDITS[name](document)
    before = _everything(project)

    with pytest.raises(SlackwaterError) as caught:
        project.apply(_read(document, signed=signed))

    assert caught.value.exit_code in {2, 4, 5}
    assert caught.value.hint
    assert _everything(project) == before


def test_the_plan_itself_would_be_applied(tmp_path: Path) -> None:
    own = make_project(tmp_path / "project")
    own_plan = own.plan("batch:3")

    assert own.apply(_read(json.loads(render(own_plan)), signed=True))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edit_of_what_apply_works_with_is_refused(project: Project, plan: Plan, data: st.DataObject) -> None:
    document = json.loads(render(plan))
    edited = _edit(document, data)
    before = _everything(project)

    with pytest.raises(SlackwaterError):
        _apply_unless_same(project, plan, document, edited)

    assert _everything(project) == before


def _apply_unless_same(project: Project, plan: Plan, document: Document, edited: str) -> None:
    found = _read(document, signed=True)
    # Without its kind an action is still known by its fields. No stream reads this one's output, so that its plan with
    # those that do is the same. Whether the pipeline was named is only for the commands of messages.
    same = (replace(plan.request, downstream=True), replace(plan.request, pipeline_named=True))
    assume(edited not in NOT_DERIVED and found not in (plan, *(replace(plan, request=one) for one in same)))
    project.apply(found)


def _edit(document: Document, data: st.DataObject) -> str:
    """Change, remove or repeat one value somewhere in the document; the field at its top."""
    top = data.draw(st.sampled_from(sorted(set(document) - {DIGEST})))
    holder: Any = document
    place: Any = top
    while isinstance(holder[place], dict | list) and holder[place] and data.draw(st.integers(0, 5)):
        holder = holder[place]
        place = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    match data.draw(st.sampled_from(["remove", "replace", "repeat"])):
        case "remove":
            del holder[place]
        case "repeat" if isinstance(holder, list):
            holder.append(holder[place])
        case _:
            values: list[Any] = [0, -1, 1, 7, 10**30, "", "x", "../..", "/etc", None, [], {}, True, "batch:1", [1]]
            holder[place] = data.draw(st.sampled_from(values))
    return top


def _read(document: Document, *, signed: bool) -> Plan:
    content = {name: value for name, value in document.items() if name != DIGEST}
    digest = digest_of(content) if signed else document.get(DIGEST)
    return parse(json.dumps(content | {DIGEST: digest}), "plan.json")


def _everything(project: Project) -> dict[str, str]:
    """All files in and next to the project, without ledger and lease, which a refused apply takes and returns."""
    names = ("ledger.db", "lease.json", "home.json")
    found = project.files(project.folder)
    beside = {path.name: "" for path in project.folder.parent.iterdir()}
    return beside | {name: content for name, content in found.items() if not any(part in name for part in names)}
