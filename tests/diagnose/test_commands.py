"""The command that a check or a finding of the number line names next: on a home it is typed, and does what it says.

That each of the number line can be parsed is in ``tests/diagnose/test_number_line.py``.
"""

import inspect
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.cli.main import make_parser
from slackwater.core.facts import Facts
from slackwater.core.records import WATCHED, StreamRecord
from slackwater.diagnose.doctor import checks, diagnose
from slackwater.diagnose.number_line import RULES
from tests.diagnose.cases import Case, all_cases
from tests.refusals.of_streams import (
    CHECKPOINT,
    another_range,
    as_it_is,
    commits_lost,
    damaged_output,
    edited_offsets,
    foreign_manifest,
    left_halfway,
    no_checkpoint,
    no_output,
    older_checkpoint,
    torn_offsets,
    with_silent_sink,
)
from tests.refusals.scene import Scene
from tests.refusals.situations import edit
from tests.support.homes import STATELESS, HomeSpec

WITH_COMMAND = {
    check.code for check in checks() if re.search(r"next=|next_command=|_unparsed\(", inspect.getsource(check.find))
}
NEEDS_SPARK = {
    "SW-CHG-002": "check builds the query",
    "SW-STATE-006": "check builds the query",
    "SW-WM-009": "check builds the query",
    "SW-WM-010": "a reset asks the source",
    "SW-DELTA-005": "a reset asks the table",
    "SW-DELTA-006": "a reset asks the table",
    "SW-KAFKA-003": "a reset asks the broker",
    "SW-KAFKA-013": "the query runs in Spark",
    "SW-KAFKA-015": "a reset asks the broker",
}
"""Commands that only a session of Spark, or a broker, can carry out: they are parsed."""
SESSION = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2")
"""The options of the last run, which a command that starts Spark repeats."""
UUID = "00000000-0000-0000-0000-000000000000"


def _run_by_slackwater(facts: Facts) -> StreamRecord:
    return facts.snapshot.stream._replace(
        pipeline="clicks", name="per page", pipeline_file="my clicks.py", session=SESSION
    )


def _watched(facts: Facts) -> StreamRecord:
    return facts.snapshot.stream._replace(pipeline=WATCHED, name="per_page", pipeline_file="")


@pytest.mark.parametrize("of", [_run_by_slackwater, _watched])
@pytest.mark.parametrize(
    "case", [one for one in all_cases() if one.fires and one.code in WITH_COMMAND], ids=lambda case: case.name
)
def test_it_can_be_typed(case: Case, of: Callable[[Facts], StreamRecord], tmp_path: Path) -> None:
    facts = case.facts(tmp_path)
    stream = of(facts)
    recorded = facts._replace(name=stream.full_name, recorded=True, snapshot=facts.snapshot._replace(stream=stream))

    named = [one.finding.next for one in diagnose(recorded).found if one.finding.code == case.code]

    assert named
    for command in named:
        if command is not None:
            words = shlex.split(command.partition("&&")[0])
            assert words[0] == "slackwater", command
            make_parser(words[1:]).parse_args(words[1:])


def _removed(*names: str) -> Callable[[Scene], object]:
    def change(scene: Scene) -> None:
        for name in names:
            (scene.checkpoint / name).unlink()

    return change


def _written(name: str, text: str) -> Callable[[Scene], object]:
    def change(scene: Scene) -> None:
        file = scene.checkpoint / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return change


def _edited(name: str, old: str, new: str) -> Callable[[Scene], object]:
    return lambda scene: edit(scene, f"{CHECKPOINT}/{name}", old, new)


def _all(*changes: Callable[[Scene], object]) -> Callable[[Scene], object]:
    def change(scene: Scene) -> None:
        for one in changes:
            one(scene)

    return change


def _second_partition(newest: int) -> Callable[[Scene], object]:
    def change(scene: Scene) -> None:
        for version in range(1, newest + 1):
            file = scene.checkpoint / "state" / "0" / "1" / f"{version}.delta"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes((scene.checkpoint / "state" / "0" / "0" / f"{version}.delta").read_bytes())

    return change


def _batch_without_rows(scene: Scene) -> None:
    with_silent_sink(scene)
    scene.sql(
        "UPDATE batches SET input_rows = 0, sources = replace(sources, '\"input_rows\": 100', '\"input_rows\": 0')"
    )


def _provider(scene: Scene) -> None:
    name = "spark.sql.streaming.stateStore.providerClass"
    _edited("offsets/5", '"conf":{', f'"conf":{{"{name}":"a.RocksDBStateStoreProvider",')(scene)


def _slow(scene: Scene) -> None:
    scene.sql("UPDATE runs SET trigger_ms = 1")
    scene.sql("UPDATE batches SET run = 1")


def _falling_behind(scene: Scene) -> None:
    end, latest = ("""'{"clicks":{"0":' || batch_id || '}}'""", """'{"clicks":{"0":' || (batch_id * 200) || '}}'""")
    scene.sql(f"UPDATE batches SET sources = json_set(sources, '$[0].end', {end}, '$[0].latest', {latest})")


NO_STATE = _removed(*(f"state/0/0/{version}.delta" for version in range(1, 7)))
V2 = 'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a"]]}}'
IN_A_HOME: tuple[tuple[str, Callable[[Scene], object], HomeSpec], ...] = (
    ("SW-LOG-001", _written("offsets/5", "v1"), HomeSpec()),
    ("SW-LOG-005", _written("commits/5", ""), HomeSpec()),
    ("SW-LOG-006", _removed("offsets/4"), HomeSpec()),
    ("SW-LOG-007", _removed("offsets/5"), HomeSpec()),
    ("SW-LOG-007", _removed(*(f"offsets/{batch}" for batch in range(6))), HomeSpec()),
    ("SW-LOG-009", commits_lost, HomeSpec(6, 3, state=None, layout=STATELESS)),
    ("SW-LOG-011", edited_offsets, HomeSpec()),
    ("SW-FSRC-001", _removed("sources/0/5"), HomeSpec()),
    ("SW-FSRC-002", _removed("sources/0/3"), HomeSpec()),
    (
        "SW-FSRC-011",
        _removed(*(f"{log}/{batch}" for log in ("offsets", "commits") for batch in (4, 5))),
        HomeSpec(state=None, layout=STATELESS),
    ),
    ("SW-STATE-003", _all(NO_STATE, _written("commits/5", V2)), HomeSpec()),
    ("SW-STATE-009", _second_partition(5), HomeSpec()),
    ("SW-STATE-010", _batch_without_rows, HomeSpec(state=None, layout=STATELESS)),
    ("SW-STATE-011", _all(NO_STATE, _written("state/0/0/6_a.changelog", "")), HomeSpec()),
    ("SW-STORE-002", _all(_removed("offsets/3"), _written(f"offsets/.3.{UUID}.tmp", "v1")), HomeSpec()),
    ("SW-STORE-006", NO_STATE, HomeSpec()),
    ("SW-WM-005", _written("commits/5", "v1"), HomeSpec()),
    ("SW-WM-006", _written("commits/5", 'v1\n{"nextBatchWatermarkMs":4102444800000}'), HomeSpec()),
    ("SW-APP-010", _falling_behind, HomeSpec(planned=11, committed=11, state=11, written=11)),
    ("SW-APP-012", _slow, HomeSpec(planned=11, committed=11, state=11, written=11)),
    ("SW-CHG-007", _removed("state/0/0/5.delta", "state/0/0/6.delta"), HomeSpec()),
    ("SW-CHG-008", _second_partition(6), HomeSpec()),
    ("SW-CHG-009", _provider, HomeSpec()),
)


REFUSED = 5
IS_REFUSED = {foreign_manifest}
"""The files of another program's manifest are not known: they are not moved."""
ELSEWHERE = {
    "sink-marker-lost": "a sink in a database: tests/cli/test_lost_marker.py",
    "written-in-part": "several outputs: tests/sinks/test_all_of_killed.py",
    "watermark-misses-batch": "a watched query, whose home a run has not made: it is parsed only",
}
RULES_IN_A_HOME: tuple[tuple[str, Callable[[Scene], object], HomeSpec], ...] = (
    ("checkpoint-behind", older_checkpoint, HomeSpec()),
    ("checkpoint-damaged", torn_offsets, HomeSpec(6, 5, 5, 5)),
    ("checkpoint-lost", no_checkpoint, HomeSpec()),
    ("clean", as_it_is, HomeSpec()),
    ("commit-missing", as_it_is, HomeSpec(6, 5, 5, 6)),
    ("failed", as_it_is, HomeSpec(run="failed")),
    ("failed-permanently", lambda scene: _failed(scene, "state-schema"), HomeSpec(run="failed")),
    ("new", as_it_is, HomeSpec(-1, -1, None, -1)),
    ("operation-unfinished", left_halfway, HomeSpec()),
    ("output-damaged", damaged_output, HomeSpec()),
    ("output-damaged", foreign_manifest, HomeSpec()),
    ("range-changed", another_range, HomeSpec(6, 5, 5, 6)),
    ("sink-ahead", as_it_is, HomeSpec(3, 3, 3, 5)),
    ("sink-behind", as_it_is, HomeSpec(written=3)),
    ("sink-behind", no_output, HomeSpec()),
    ("sink-silent", with_silent_sink, HomeSpec()),
    ("state-lost", as_it_is, HomeSpec(state=3)),
)


def _failed(scene: Scene, code: str) -> None:
    scene.sql("UPDATE runs SET failure = 'permanent', failure_code = ?", values=(code,))


@pytest.mark.parametrize(
    ("verb", "code", "change", "spec"),
    [
        pytest.param(verb, *one, id=f"{one[0]} {number}")
        for verb, table in (("doctor", IN_A_HOME), ("status", RULES_IN_A_HOME))
        for number, one in enumerate(table)
    ],
)
def test_in_a_home_it_is_carried_out(
    code: str,
    change: Callable[[Scene], object],
    spec: HomeSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    verb: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # no command may start Spark
    scene = Scene(tmp_path, spec)
    change(scene)

    typed = scene.type(scene.next_of(verb, code))
    if change in IS_REFUSED:
        assert typed.exit_code == REFUSED
        assert "hint:" in typed.text, f"it is refused, and says nothing of what is possible: {typed.text}"
    else:
        assert typed.exit_code == 0, typed.text


def test_every_command_is_typed() -> None:
    assert {code for code, _, _ in IN_A_HOME} | NEEDS_SPARK.keys() == WITH_COMMAND
    with_command = {rule.code for rule in RULES if "next=" in inspect.getsource(rule.find)}
    with_command.add("operation-unfinished")  # commands make this finding, too: by ``unfinished``

    assert {code for code, *_ in RULES_IN_A_HOME} | ELSEWHERE.keys() == with_command
