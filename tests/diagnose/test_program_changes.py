"""Changes of programs that need no plan: sources of other kinds, functions, options."""

import json
from dataclasses import replace
from typing import Any

import pytest

from slackwater.core.program import (
    InputShape,
    OperatorKind,
    OperatorShape,
    Program,
    SourceShape,
    Traced,
    Watermark,
    Window,
)
from slackwater.core.verdict import Change, Effect, OtherSetting, Verdict
from slackwater.diagnose.program_changes import changes, other_rows, verdict
from slackwater.diagnose.refusal import Ways

ISOLATION = "kafka.isolation.level"
KAFKA = SourceShape("kafka", "topics clicks", {"value": "binary"}, {"kafka.bootstrap.servers": "a:9092,b:9092"})
COUNT = OperatorShape(
    "aggregate",
    (InputShape("source 0", functions=("clean",)),),
    keys=(Traced("station", "clean(station)", ("station",), "string"),),
    aggregates=(Traced("count", "count(1)"),),
    functions=("clean",),
)
PROGRAM = Program(
    "4.1.3",
    "update",
    (KAFKA,),
    (COUNT,),
    (InputShape("operator 0"),),
    ("station string", "count long"),
    {"clean": "d1"},
)


def _source(**others: Any) -> Program:
    return replace(PROGRAM, sources=(replace(KAFKA, **others),))


@pytest.mark.parametrize(
    ("now", "effect", "code"),
    [
        (_source(location="topics clicks,views"), "changes-rows", "sources-changed"),
        (_source(location="topics views"), "not-restorable", "sources-changed"),
        (_source(kind="rate", location=""), "not-restorable", "sources-changed"),
        (_source(options={"kafka.bootstrap.servers": "b:9092,c:9092"}), "compatible", "source-options-changed"),
        (_source(options={"kafka.bootstrap.servers": "x:9092"}), "changes-rows", "source-options-changed"),
        (_source(options={**KAFKA.options, ISOLATION: "read_committed"}), "changes-rows", "source-options-changed"),
        (_source(options={**KAFKA.options, ISOLATION: "read_uncommitted"}), "compatible", "source-options-changed"),
        (_source(options={**KAFKA.options, "kafka.client.id": "a"}), "compatible", "source-options-changed"),
        (_source(options={**KAFKA.options, "maxoffsetspertrigger": "10"}), "same", None),
        (_source(options={**KAFKA.options, "startingoffsets": "latest"}), "compatible", "start-position-ignored"),
        (_source(options={**KAFKA.options, "includeheaders": "true"}), "changes-rows", "source-options-changed"),
        (replace(PROGRAM, functions={"clean": "d2"}), "changes-rows", "function-changed"),
        (replace(PROGRAM, functions={}), "same", None),
        (replace(PROGRAM, spark_version="4.3.0", code="another"), "same", None),
    ],
)
def test_a_change_of_a_program(now: Program, effect: str, code: str | None) -> None:
    found = verdict(PROGRAM, now)
    assert (found.effect.word, found.changes[0].code if found.changes else None) == (effect, code)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"k": "a"}, {"k": "a"}, None),
        ({"k": "a"}, {"rate": "a"}, None),
        ({"k": "a", "j": "b"}, {"j": "a", "k": "b"}, "a different value of j, k;"),
        ({"k": "a", "j": "b"}, {"k": "c", "j": "b"}, "a different value of k;"),
        ({"k": "a"}, {"k": "a", "scale.k": "b"}, "a different value of scale.k;"),
        (dict.fromkeys("abcdefg", "a"), dict.fromkeys("abcdefg", "b"), "of a, b, c, d, e and 2 more;"),
        (None, {"k": "b"}, None),
        ({"k": "a"}, None, None),
    ],
)
def test_values_that_a_function_takes_with_it(
    before: dict[str, str] | None, after: dict[str, str] | None, text: str | None
) -> None:
    kept, now = (replace(PROGRAM, values={} if one is None else {"clean": one}) for one in (before, after))
    found = changes(kept, now)
    assert [change.code for change in found] == ([] if text is None else ["function-changed"])
    assert all(text is not None and text in change.text for change in found)
    assert Program.from_json(json.loads(json.dumps(kept.as_json()))) == kept


def test_a_function_with_other_code_has_other_variables() -> None:
    kept = replace(PROGRAM, values={"clean": {"k": "a", "gone": "b"}})
    now = replace(PROGRAM, functions={"clean": "d2"}, values={"clean": {"k": "a", "new": "c"}})
    assert changes(kept, now)[0].text.startswith("function clean has changed; rows")


def test_what_cannot_be_compared_is_said_once_of_each_function() -> None:
    now = replace(PROGRAM, outside={"clean": ("chance", "the clock"), "known": ("files",)})
    (note,) = changes(replace(PROGRAM, outside={"clean": ("chance",), "known": ("files",)}), now)
    assert (note.code, note.effect, note.said) == ("function-not-repeatable", Effect.SAME, True)
    assert note.text.startswith("function clean depends on the clock: ")
    assert [one.place for one in changes(PROGRAM, now)] == ["function clean", "function known"]
    assert changes(now, now) == changes(now, PROGRAM) == ()
    assert Program.from_json(json.loads(json.dumps(now.as_json()))) == now


KEPT = {"TZ": "Asia/Tokyo", "FACTOR": "d1", "UNSET": "", "spark.executorEnv.RATE": "d3"}


@pytest.mark.parametrize(
    ("environment", "effect", "places"),
    [
        pytest.param(KEPT, "same", [], id="the-same"),
        pytest.param({}, "same", [], id="not-recorded"),
        pytest.param({**KEPT, "TZ": "Japan"}, "same", [], id="another-name-of-the-zone"),
        pytest.param({**KEPT, "TZ": "UTC"}, "changes-rows", ["TZ"], id="zone"),
        pytest.param({**KEPT, "FACTOR": "d2"}, "changes-rows", ["FACTOR"], id="another-value"),
        pytest.param({**KEPT, "FACTOR": ""}, "changes-rows", ["FACTOR"], id="no-longer-set"),
        pytest.param({**KEPT, "UNSET": "d2"}, "changes-rows", ["UNSET"], id="newly-set"),
        pytest.param({**KEPT, "READ_NEWLY": "d2"}, "same", [], id="read-by-new-code"),
        pytest.param({"TZ": "Asia/Tokyo", "spark.executorEnv.RATE": "d3"}, "same", [], id="read-by-old-code"),
        pytest.param({**KEPT, "spark.executorEnv.RATE": "d4"}, "changes-rows", ["RATE"], id="setting"),
        pytest.param({**KEPT, "spark.executorEnv.NEW": "d4"}, "changes-rows", ["NEW"], id="new-setting"),
    ],
)
def test_what_functions_get_from_their_process(environment: dict[str, str], effect: str, places: list[str]) -> None:
    found = verdict(replace(PROGRAM, environment=KEPT), replace(PROGRAM, environment=environment))
    assert (found.effect.word, [change.place for change in found.changes]) == (effect, places)
    assert {change.code for change in found.changes} <= {"environment-changed"}


def test_the_environment_of_functions_behind_the_state_is_a_note_that_a_start_says() -> None:
    kept = replace(PROGRAM, output_environment=KEPT)
    found = verdict(kept, replace(kept, output_environment={**KEPT, "FACTOR": "d2", "TZ": "UTC"}))
    assert found.starts
    assert [(change.code, change.place, change.said) for change in found.changes] == [
        ("environment-changed", "TZ", True),
        ("environment-changed", "FACTOR", True),
    ]
    of_both = replace(kept, environment=KEPT)
    now = replace(of_both, environment={**KEPT, "TZ": "UTC"}, output_environment={**KEPT, "TZ": "UTC"})
    assert [change.place for change in verdict(of_both, now).changes] == ["TZ"]


def test_another_version_of_a_library_is_a_note() -> None:
    kept = replace(PROGRAM, environment=KEPT, versions={"Python": "3.12", "numpy": "2.1", "removed": "1"})
    found = verdict(kept, replace(kept, versions={"Python": "3.12", "numpy": "2.2", "added": "1"}))
    assert found.starts
    assert [change.text for change in found.changes] == ["Python functions had numpy 2.1, have 2.2"]


def test_a_function_that_was_only_renamed_changes_nothing() -> None:
    renamed = replace(
        PROGRAM,
        operators=(
            replace(
                COUNT,
                inputs=(InputShape("source 0", functions=("tidy",)),),
                keys=(Traced("station", "tidy(station)", ("station",), "string"),),
                functions=("tidy",),
            ),
        ),
        functions={"tidy": "d1"},
    )
    assert changes(PROGRAM, renamed) == ()
    other = verdict(PROGRAM, replace(renamed, functions={"tidy": "d2"}))
    assert [one.code for one in other.changes] == ["keys-changed"]


def test_the_operator_of_a_program_that_recorded_less_is_read() -> None:
    assert Program.from_json({}) == Program()
    assert Program.from_json({"operators": [{"kind": "join"}]}).operators == (OperatorShape("join"),)
    assert Program.from_json(PROGRAM.as_json()) == PROGRAM


def test_a_user_accepts_by_code_what_spark_can_run() -> None:
    filtered = Change("filter-before-state-changed", Effect.CHANGES_ROWS, "")
    keys = Change("keys-changed", Effect.NEEDS_REBUILD, "", goal="rebuild", acceptable=False)
    delay = Change("watermark-delay-changed", Effect.COMPATIBLE, "")
    found = Verdict((keys, filtered, delay))
    assert (found.effect, found.starts, found.goal) == (Effect.NEEDS_REBUILD, False, "rebuild")
    assert found.unaccepted(frozenset({"filter-before-state-changed"})) == (keys,)
    assert found.unaccepted(frozenset({"keys-changed"})) == (keys, filtered)
    assert Verdict((delay,)).starts


@pytest.mark.parametrize(
    ("was", "now", "acceptable"),
    [
        ("sum(n)", "max(n)", True),
        ("sum(n)", "sum(m)", True),
        ("sum(n)", "avg(n)", False),
        ("count(1)", "sum(n)", False),
    ],
)
def test_an_aggregate_is_accepted_where_spark_can_use_its_buffer(was: str, now: str, *, acceptable: bool) -> None:
    before, after = (
        replace(PROGRAM, operators=(replace(COUNT, aggregates=(Traced("x", text),)),)) for text in (was, now)
    )
    (change,) = changes(before, after)
    assert (change.code, change.acceptable) == ("aggregates-changed", acceptable)


@pytest.mark.parametrize(
    ("kind", "windows", "code"),
    [
        ("aggregate", (Window("tumbling", "at", 1, 1),), None),
        ("aggregate", (Window("session", "at", gap="5 minutes"),), "watermark-delay-changed"),
        ("deduplicate", (), "watermark-delay-changed"),
        ("join", (), "watermark-delay-changed"),
    ],
)
def test_in_complete_mode_only_an_aggregation_without_sessions_keeps_late_rows(
    kind: OperatorKind, windows: tuple[Window, ...], code: str | None
) -> None:
    def program(delay_ms: int) -> Program:
        rows = InputShape("source 0", watermarks=(Watermark("at", delay_ms),))
        return replace(PROGRAM, output_mode="complete", operators=(OperatorShape(kind, (rows,), windows=windows),))

    assert [one.code for one in changes(program(60_000), program(1_000))] == ([code] if code else [])


def _parsing(options: str) -> Program:
    parsed = f"json_to_structs(value, schema struct<a:date> {{options {options}}}).a"
    return replace(PROGRAM, operators=(replace(COUNT, keys=(Traced("a", parsed, ("value",)),)),))


def test_options_of_an_expression_are_compared() -> None:
    assert changes(_parsing("dateformat MM/yyyy"), _parsing("dateformat MM/yyyy")) == ()
    other = changes(_parsing("dateformat MM/yyyy"), _parsing("dateformat yyyy"))
    assert [one.code for one in other] == ["keys-changed"]


@pytest.mark.parametrize(
    ("settings", "old", "run", "reset"),
    [
        (
            [OtherSetting("spark.app.least", "1", "2"), OtherSetting("spark.app.most", None, "9")],
            "spark.app.least=1, no spark.app.most",
            " --conf spark.app.least=1",
            " --conf spark.app.least=2 --conf spark.app.most=9",
        ),
        # No option takes a setting away that the last run had.
        ([OtherSetting("spark.app.least", "1", None)], "spark.app.least=1", " --conf spark.app.least=1", None),
        (
            [OtherSetting("spark.sql.ansi.enabled", "false", "true", in_code=True)],
            "spark.sql.ansi.enabled=false in the pipeline file",
            "",
            "",
        ),
    ],
)
def test_where_only_settings_differ_no_rebuild_is_named(
    settings: list[OtherSetting], old: str, run: str, reset: str | None
) -> None:
    rebuilt = Verdict((Change("keys-changed", Effect.NEEDS_REBUILD, "other keys", goal="rebuild", acceptable=False),))
    started, *again = Ways("p/s", "p.py").lines(rebuilt, settings)
    assert started == f"start it with the settings that made its state, {old}: slackwater run p.py{run}"
    command = "slackwater plan reset p/s --from earliest --output swap --pipeline p.py"
    what = "or process everything again with the present settings, which apply needs too"
    assert again == ([] if reset is None else [f"{what}: {command}{reset}"])


WRITTEN = InputShape("source 0", filters=("(n > 4)",), columns=(Traced("run", "'first'", (), "string"),))
STATELESS = Program("4.1.3", "append", (KAFKA,), (), (WRITTEN,), ("run string",), settings={"zone": "UTC"})


def _written(**others: Any) -> Program:
    return replace(STATELESS, rows=(replace(WRITTEN, **others),))


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (_written(filters=("(n > 5)",)), ["filter (n > 4) was removed", "filter (n > 5) was added"]),
        (_written(steps=("explode(items)",)), ["the rows that are written are made in a different way"]),
        (replace(STATELESS, settings={"zone": "CET"}), ["setting zone was UTC, is CET"]),
        (replace(STATELESS, output_schema=("run int",)), ["the output has other columns"]),
        (
            replace(STATELESS, sources=(replace(KAFKA, options={**KAFKA.options, "includeheaders": "true"}),)),
            ["option includeheaders of source 0 was not set, is true"],
        ),
        (
            replace(STATELESS, sources=(replace(KAFKA, schema={"value": "string"}),)),
            ["column value of source 0 was binary, is string"],
        ),
        (_written(columns=(Traced("run", "'second'", (), "string"),)), []),
        (replace(STATELESS, code="another", spark_version="4.1.4"), []),
        (replace(STATELESS, sources=(replace(KAFKA, options={**KAFKA.options, "kafka.client.id": "2"}),)), []),
        (replace(STATELESS, sources=(replace(KAFKA, options={**KAFKA.options, "startingoffsets": "latest"}),)), []),
    ],
)
def test_what_two_attempts_that_write_to_one_output_may_not_differ_in(now: Program, found: list[str]) -> None:
    lines = other_rows(STATELESS.as_json(), now.as_json())

    assert len(lines) == len(found)
    assert all(line.startswith(text) for line, text in zip(lines, found, strict=True))


def test_programs_that_are_not_recorded_are_not_compared() -> None:
    assert other_rows(None, STATELESS.as_json()) == other_rows(STATELESS.as_json(), None) == ()
