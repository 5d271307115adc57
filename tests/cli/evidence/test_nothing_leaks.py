"""No row and no secret is in a bundle, wherever they were planted: every file of it is searched."""

import json
import sqlite3
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from slackwater.cli.verbs.evidence import document
from slackwater.core.program import Program, SourceShape, made_by
from slackwater.core.records import OperationRecord
from slackwater.ledger.ledger import Ledger
from tests.cli.evidence.cases import CASES
from tests.cli.evidence.conftest import Evidence, Made
from tests.support.homes import LAYOUT, STREAM, HomeSpec, make_home

ROW = "alice.nobody@example.org"
OTHER_ROW = "4929-1234-5678-9012"
SECRETS = tuple(f"hunter2{letter}" for letter in "abcdefghijklmnop")
SETTINGS = {
    "spark.hadoop.fs.s3a.secret.key": SECRETS[0],
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:postgresql://ann:{SECRETS[1]}@db/x",
    "spark.executorEnv.DATABASE": SECRETS[2],
    "spark.driver.extraJavaOptions": f"-Dpin={SECRETS[3]}",
    "spark.mycompany.pin": SECRETS[4],
    "spark.sql.catalog.prod.uri": f"thrift://host?x={SECRETS[5]}",
    "spark.sql.mycompany.token": SECRETS[6],
}
OPTIONS = {
    "kafka.sasl.jaas.config": f'PlainLoginModule required username="ann" password="{SECRETS[7]}";',
    "kafka.ssl.keystore.password": SECRETS[8],
    "pin": SECRETS[9],
    "startingOffsets": "earliest",
}
MESSAGE = (
    f"[CAST_INVALID_INPUT] The value '{ROW}' of the type \"STRING\" cannot be cast. SQLSTATE: 22018\n"
    f"org.postgresql.util.PSQLException: ERROR: duplicate key\n  Detail: Key (card)=({OTHER_ROW}) already exists.\n"
    f"at jdbc:postgresql://ann:{SECRETS[10]}@db:5432/clicks?password={SECRETS[11]}"
)


def _planted(folder: Path, ended: str = "failed") -> None:
    """A stream with a row in all its data, and with secrets wherever people put them."""
    shape = SourceShape("kafka", f"http://ann:{SECRETS[12]}@broker:9092", {"email": "string"}, OPTIONS)
    program = Program("4.1.3", sources=(shape,)).as_json()
    home = make_home(folder, HomeSpec(planned=6, layout=LAYOUT, source="kafka"))
    checkpoint = home / "streams" / STREAM / "checkpoints" / "0001"
    for file in (folder / "out").glob("*.parquet"):
        file.write_text(f"{ROW},{OTHER_ROW}".ljust(1000))
    for file in (checkpoint / "state" / "0" / "0").glob("*.delta"):
        file.write_bytes(file.read_bytes() + ROW.encode() + OTHER_ROW.encode())
    (checkpoint / "state" / "0" / "0" / "_metadata" / "notes").write_text(ROW)
    (checkpoint / "offsets" / "6").write_text(
        (checkpoint / "offsets" / "6").read_text().replace('"conf":{', f'"conf":{json.dumps(SETTINGS)[:-1]},', 1)
    )
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        run = ledger.begin_run(STREAM, 1, "4.1.3", settings=SETTINGS)
        ledger.end_run(run.id, ended, MESSAGE, failure="permanent")
        record = OperationRecord("20260131T000000-abcdef", STREAM, "rebuild", "applying", 1)
        ledger.begin_operation(record)
        ledger.end_operation(record.id, "refused", MESSAGE)
    _edit(home, "UPDATE runs SET reason = ? WHERE reason IS NOT NULL", MESSAGE)
    _edit(home, "UPDATE operations SET summary = ?", MESSAGE)
    _edit(home, "UPDATE generations SET programs = ?", json.dumps(made_by(program)))
    _edit(home, "UPDATE batches SET sources = replace(sources, 'FileStreamSource[clicks]', ?)", _description())


def _description() -> str:
    return f"KafkaV2[Subscribe[clicks]] s3a://AK:{SECRETS[13]}@bucket/x"


def _edit(home: Path, statement: str, value: str) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as database, database:
        assert database.execute(statement, (value,)).rowcount > 0


def _spellings(word: str) -> set[str]:
    """A word as a page, a document, an address or a header would have it."""
    return {word, quote(word), json.dumps(word)[1:-1], b64encode(word.encode()).decode(), word.replace("@", "&#64;")}


def found_in(files: Mapping[str, str], words: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        (name, word)
        for name, text in files.items()
        for word in words
        if any(spelling.lower() in text.lower() for spelling in _spellings(word))
    ]


@pytest.mark.parametrize("word", [ROW, OTHER_ROW, *SECRETS])
def test_what_is_searched_for_would_be_found(word: str) -> None:
    page = f"<td>{word.upper()}</td>"

    assert found_in({"evidence.html": page, "README.txt": "nothing"}, (word,)) == [("evidence.html", word)]


def test_no_row_and_no_secret_is_in_a_bundle(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _planted(tmp_path)
    (tmp_path / "driver.log").write_text(f"{MESSAGE}\njava.lang.IllegalStateException: batch 6 doesn't exist {ROW}\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRETS[14])
    monkeypatch.setenv("DATABASE", SECRETS[15])

    made = evidence(STREAM, "--verify", "--error", "driver.log")

    assert made.code == 0, made.err
    assert found_in({**made.files, "stdout": made.out, "stderr": made.err}, (ROW, OTHER_ROW, *SECRETS)) == []
    assert "can be left" not in made.files["README.txt"] + made.out
    _still_useful(made)


def _still_useful(made: Made) -> None:
    """What is not a secret is there: a bundle that hides everything would hide the secrets too."""
    newest = made.document["runs"][0]
    assert {"CAST_INVALID_INPUT", "PSQLException", "22018"} <= set(newest["conditions"])
    assert newest["message"] is None
    assert newest["settings"].keys() == SETTINGS.keys()
    assert set(newest["settings"].values()) == {"***"}
    assert made.document["checkpoint"]["settings"]["spark.sql.shuffle.partitions"] == "1"
    assert made.document["operations"][0]["status"] == "refused"
    assert made.document["sources"][0]["description"] == "KafkaV2[Subscribe[clicks]] s3a://***@bucket/x"
    options = made.document["sources"][0]["options"]
    assert options.pop("startingOffsets") == "earliest"
    assert options.keys() == OPTIONS.keys() - {"startingOffsets"}
    assert set(options.values()) == {"***"}


def test_messages_are_added_when_they_are_asked_for_without_their_secrets(evidence: Evidence, tmp_path: Path) -> None:
    _planted(tmp_path)

    made = evidence(STREAM, "--messages")

    assert ROW in made.document["runs"][0]["message"]
    assert "--messages" in made.files["README.txt"]
    for shown in (made.files["README.txt"], made.out):
        assert "a secret can be left that no rule recognises" in shown
    assert found_in(made.files, SECRETS) == []


def test_what_an_error_has_found_is_a_message_too(evidence: Evidence, tmp_path: Path) -> None:
    CASES["lost-ledger"](tmp_path)
    (tmp_path / ".slackwater" / "ledger.db").write_bytes(b"no database" * 100)

    made, asked = evidence(STREAM), evidence(STREAM, "--messages")

    assert made.document["head"]["code"] == asked.document["head"]["code"] == "ledger-unreadable"
    assert made.document["head"]["found"] is None
    assert "can be left" not in made.files["README.txt"] + made.out
    assert asked.document["head"]["found"]
    assert "can be left" in asked.files["README.txt"]
    assert "can be left" in asked.out


def test_options_of_a_source_are_shown_only_where_they_are_known_to_be_harmless() -> None:
    shown = document.shown_options(OPTIONS)

    assert shown.pop("startingOffsets") == "earliest"
    assert set(shown.values()) == {"***"}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("spark.sql.shuffle.partitions", "8", "8"),
        ("spark.executor.memory", "4g", "4g"),
        ("spark.sql.streaming.stateStore.providerClass", "x.RocksDB", "x.RocksDB"),
        ("spark.executor.extraJavaOptions", "-Dpin=1", "***"),
        ("spark.sql.catalog.prod.uri", "thrift://x", "***"),
        ("spark.app.name", "clicks", "***"),
        ("anything", "1", "***"),
    ],
)
def test_only_settings_of_spark_itself_have_their_values(name: str, value: str, shown: str) -> None:
    assert document.shown_settings({name: value}) == {name: shown}


def test_a_topic_that_is_named_like_a_secret_keeps_its_offsets() -> None:
    offsets = {"password-resets": {"0": 7}, "token": "abc"}

    assert document.redacted(offsets) == {"password-resets": {"0": 7}, "token": "***"}


@pytest.mark.parametrize(
    ("message", "names"),
    [
        (None, ()),
        (f"KeyError: '{ROW}'", ("KeyError",)),
        (f"ValueError: invalid literal for int() with base 10: '{ROW}'", ("ValueError",)),
        ("[STREAM_FAILED] a [CANNOT_LOAD_STATE_STORE.XY] b", ("STREAM_FAILED", "CANNOT_LOAD_STATE_STORE.XY")),
        ("[OF_A_VENDOR.ONE] x", ("OF_A_VENDOR.ONE",)),
        ("at x org.apache.spark.SparkException: [OF_A_VENDOR] x", ("OF_A_VENDOR", "SparkException")),
        ("value [ALICE] of [CARD_4111111111111111] cannot be cast", ()),
        ("ValueError: [CARD_4111111111111111]", ("ValueError",)),
        ("a value AliceError of x.y.SomeException, x.Outer$InnerError", ("SomeException", "InnerError")),
        (f"row {ROW} [A] [lower] Alice", ()),
    ],
)  # fmt: skip
def test_only_names_are_taken_from_a_message(message: str | None, names: tuple[str, ...]) -> None:
    assert document.named_conditions(message) == names
