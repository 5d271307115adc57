"""``slackwater doctor`` on streams, on checkpoints that were never recorded, and on error texts."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from slackwater.ledger.home import Home
from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger
from tests.cli.conftest import Slackwater
from tests.support.corpus import corpus_case
from tests.support.homes import STREAM, HomeSpec, make_home

GAP = "java.lang.IllegalStateException: batch 6 doesn't exist"
NOT_RECORDED = "file_json_to_parquet_filesink"


def test_a_healthy_stream(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)

    done = slackwater("doctor")

    assert done.code == 0
    assert f"{STREAM}  healthy" in done.out


@contextmanager
def in_use(folder: Path, purpose: str) -> Iterator[None]:
    """A project whose stream a process of this purpose writes to; the newest file of the output is missing."""
    home = make_home(folder, HomeSpec(written=8, run="open"))
    (folder / "out" / "part-8.parquet").unlink()
    with (
        Ledger.open(home / "ledger.db", create=False) as ledger,
        Lease.acquire(ledger, STREAM, Home(home).stream_folder(*STREAM.split("/")), purpose),
    ):
        yield


@pytest.mark.parametrize(
    ("purpose", "how"),
    [
        ("run", f"the stream is running, which changes what is compared; stop it: slackwater stop {STREAM}; then: "),
        ("prune", "prune is in progress, and changes what is compared; when it has ended: "),
    ],
)
@pytest.mark.parametrize("words", [(), ("--verify",)])
def test_a_stream_in_use_is_not_healthy_as_nothing_is_compared(
    slackwater: Slackwater, tmp_path: Path, purpose: str, how: str, words: tuple[str, ...]
) -> None:
    with in_use(tmp_path, purpose):
        done = slackwater("doctor", STREAM, *words)
        document = slackwater("doctor", STREAM, *words, "--format", "json").document

    assert done.code == 5
    assert done.out.endswith(f"{how}slackwater doctor {STREAM}")
    missed = [one["code"] for one in document["streams"][0]["not_checked"]]
    assert {"sink-ahead", "output-damaged", "checkpoint-damaged", "state-lost", "sink-marker-lost"} < set(missed)
    assert len(missed) == len(set(missed))
    assert ("failed" in missed) is (purpose != "run"), "a run is the answer to the run before it"
    assert not document["healthy"]


def test_a_bundle_of_a_stream_that_runs_is_not_healthy_and_its_status_is_in_order(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    with in_use(tmp_path, "run"):
        done = slackwater("evidence", STREAM, "--out", "facts.zip", "--format", "json")
        status = slackwater("status", STREAM)

    assert (done.code, done.document["head"]["state"]) == (0, "not-checked")
    assert (status.code, "not checked" in status.out) == (0, False)


def test_what_is_wrong_comes_with_its_risk_and_its_command(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, HomeSpec(written=8))

    done = slackwater("doctor", STREAM)

    assert done.code == 1
    assert "sink-ahead" in done.out
    assert "risk: skip, certain" in done.out
    assert f"next: slackwater plan rebuild {STREAM}" in done.out
    assert f"for others   slackwater evidence {STREAM} --out bundle.zip" in done.out


def test_the_location_of_a_recorded_checkpoint_is_verified_as_its_stream(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    make_home(tmp_path)
    location = f".slackwater/streams/{STREAM}/checkpoints/0001"
    (tmp_path / "out" / "part-nobody.parquet").write_bytes(b"of no batch")

    for target in (STREAM, location):
        (plain,) = slackwater("doctor", target, "--format", "json").document["streams"]
        verified = slackwater("doctor", target, "--verify", "--format", "json").document["streams"][0]["findings"]
        assert plain["stream"] == STREAM
        assert "orphan-files" not in [one["code"] for one in plain["findings"]]
        assert "orphan-files" in [one["code"] for one in verified]


def test_a_ledger_that_cannot_be_read_does_not_hide_the_checkpoint(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / ".slackwater" / "ledger.db").write_bytes(b"no database" * 100)

    done = slackwater("doctor", f".slackwater/streams/{STREAM}/checkpoints/0001", "--format", "json")

    assert not done.document["streams"][0]["recorded"]
    assert "examined as not recorded" in done.err


def test_what_the_output_would_show_is_not_healthy_without_it(slackwater: Slackwater, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", NOT_RECORDED, tmp_path)

    done = slackwater("doctor", str(case / "checkpoint"), "--format", "json")

    assert done.code == 5
    assert not done.document["healthy"]
    missed = {one["code"]: one for one in done.document["streams"][0]["not_checked"]}
    assert missed["sink-ahead"]["how"] == "add --sink with its path or URI"


def test_the_output_of_a_checkpoint_that_is_not_recorded(slackwater: Slackwater, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", NOT_RECORDED, tmp_path)
    shutil.rmtree(case / "checkpoint" / "commits")
    shutil.rmtree(case / "checkpoint" / "offsets")
    shutil.copytree(
        corpus_case("4.0.5", NOT_RECORDED, tmp_path) / "checkpoint" / "offsets", case / "checkpoint/offsets"
    )
    for entry in (case / "checkpoint" / "offsets").iterdir():
        if entry.stem.strip(".") > "3":
            entry.unlink()

    document = slackwater("doctor", str(case / "checkpoint"), "--sink", str(case / "sink"), "--format", "json").document

    codes = [one["code"] for one in document["streams"][0]["findings"]]
    assert "sink-ahead" in codes
    assert not any("next" in one for one in document["streams"][0]["findings"]), "no command changes what is unknown"


def test_the_files_decide_which_cause_a_message_has(slackwater: Slackwater, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", NOT_RECORDED, tmp_path)
    (case / "checkpoint" / "offsets" / "6").unlink()
    (tmp_path / "driver.log").write_text(f"INFO something\n{GAP}\n")

    document = slackwater(
        "doctor", str(case / "checkpoint"), "--error", "driver.log", "--format", "json"
    ).document  # fmt: skip

    causes = document["streams"][0]["errors"][0]["causes"]
    assert (causes[0]["code"], causes[0]["state"], causes[0]["by"]) == ("LOG-06", "confirmed", "SW-LOG-006")
    assert ("FSRC-01", "excluded") in [(one["code"], one["state"]) for one in causes]


def test_another_cause_of_the_same_message(slackwater: Slackwater, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", NOT_RECORDED, tmp_path)
    for entry in (case / "checkpoint" / "sources" / "0").iterdir():
        if entry.name.strip(".").startswith("7"):
            entry.unlink()
    (tmp_path / "driver.log").write_text(GAP.replace("6", "7"))

    document = slackwater("doctor", str(case / "checkpoint"), "--error", "driver.log", "--format", "json").document

    causes = document["streams"][0]["errors"][0]["causes"]
    assert (causes[0]["code"], causes[0]["state"]) == ("FSRC-01", "confirmed")


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [(["doctor"], 1, b"LOG-06"), (["evidence", "checkpoint", "--out", "facts.zip"], 0, b"facts.zip")],
)
def test_a_text_of_stdin_may_have_any_bytes(words: list[str], code: int, shown: bytes, tmp_path: Path) -> None:
    shutil.move(corpus_case("4.3.0", NOT_RECORDED, tmp_path) / "checkpoint", tmp_path / "checkpoint")
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", *words, "--error", "-"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        input=b"Nachl\xe4ssig: " + GAP.encode(),
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (code, b"")
    assert shown in done.stdout


def test_without_files_the_likely_cause_is_first(slackwater: Slackwater, tmp_path: Path) -> None:
    """Also if a check could confirm a less likely one."""
    (tmp_path / "driver.log").write_text("[LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW] Some of")

    lines = [line.strip() for line in slackwater("doctor", "--error", "driver.log").out.splitlines()[1:]]

    assert lines[0].startswith(
        "KAFKA-12 (Topics changed during an available-now run): possible; files do not show it: "
    )
    assert lines[1] == "KAFKA-04 (Partitions or topics disappeared): possible"
    assert lines[-2:] == [
        "next         slackwater doctor --all --error driver.log",
        "explained    slackwater explain KAFKA-12",
    ]


def test_a_text_that_does_not_decide_says_how_to_tell_the_causes_apart(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text("org.apache.hadoop.fs.FileAlreadyExistsException: /ck/x")

    out = slackwater("doctor", "--error", "driver.log").out
    [stream] = slackwater("doctor", "--error", "driver.log", "--format", "json").document["streams"]

    assert "not decided  the text alone does not tell the cause" in out
    assert "STORE-03 if only one driver uses the checkpoint, and the next start passes" in out
    assert list(stream["errors"][0]["signs"]) == ["STORE-03", "SHARE-01"]
    assert "it is this failure if only one driver uses" in " ".join(slackwater("explain", "STORE-03").out.split())


def test_a_text_that_decides_has_no_signs(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text("Failed to find data source: kafka")

    assert "not decided" not in slackwater("doctor", "--error", "driver.log").out


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_text_that_names_a_checkpoint_leads_to_its_files(slackwater: Slackwater, tmp_path: Path, scheme: str) -> None:
    case = corpus_case("4.3.0", "agg_window_append_hdfs", tmp_path)
    checkpoint = f"{scheme}{case / 'checkpoint'}"
    delta = case / "checkpoint" / "state" / "0" / "0" / "8.delta"
    text = f"Error reading delta file {checkpoint}/state/0/0/8.delta of HDFSStateStoreProvider[id = (op=0,part=0)]"
    (tmp_path / "driver.log").write_text(f"{text}: {checkpoint}/state/0/0/8.delta does not exist")
    delta.unlink()

    alone = slackwater("doctor", "--error", "driver.log").out
    printed = next(line for line in alone.splitlines() if line.startswith("  next")).replace("<folder>", str(tmp_path))
    verb, *words = shlex.split(printed.removeprefix("  next"))[1:]
    assert (verb, words) == ("doctor", [checkpoint, "--error", "driver.log"])

    assert "STATE-01 (A delta or snapshot of state is missing): the cause, as " in slackwater(verb, *words).out


def test_a_text_without_a_known_error_is_not_healthy(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text("all is well")

    done = slackwater("doctor", "--error", "driver.log")

    assert done.code == 5
    assert "it is not a failure that Slackwater knows" in done.out
    assert "the text mentions" not in done.out


def test_a_failure_that_is_not_known_shows_what_its_text_says_of_the_query(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    (tmp_path / "driver.log").write_text(
        "INFO SparkContext: Running Spark version 3.5.1\n"
        "INFO ResolveWriteToStream: Checkpoint root s3a://b/ck resolved to s3a://b/ck.\n"
        "ERROR MicroBatchExecution: batch 7 failed\njava.lang.OutOfMemoryError: Java heap space\n"
    )

    done = slackwater("doctor", "--error", "driver.log")
    [stream] = slackwater("doctor", "--error", "driver.log", "--format", "json").document["streams"]

    assert done.code == 5
    assert "the text mentions Spark 3.5.1, the checkpoint s3a://b/ck, batch 7" in done.out
    assert "next         slackwater doctor s3a://b/ck" in done.out
    assert stream["read"] == {"spark": "3.5.1", "location": "s3a://b/ck", "batch": "7"}


def test_an_output_that_cannot_be_reached_is_not_checked(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = corpus_case("4.3.0", NOT_RECORDED, tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    done = slackwater("doctor", str(case / "checkpoint"), "--sink", "s3://bucket/out", "--format", "json")

    assert done.code == 5
    [stream] = done.document["streams"]
    reasons = {one["code"]: one["reason"] for one in stream["not_checked"]}
    assert reasons["sink-ahead"].startswith("the output at s3://bucket/out cannot be listed: ")


def test_a_text_without_a_known_error_is_said_beside_the_findings(slackwater: Slackwater, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", NOT_RECORDED, tmp_path)
    (tmp_path / "driver.log").write_text("java.lang.Exception: nobody knows this\n")

    done = slackwater("doctor", str(case / "checkpoint"), "--error", str(tmp_path / "driver.log"))

    assert "it is not a failure that Slackwater knows" in done.out


def test_code_is_compared_with_a_target_only(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text(GAP)

    done = slackwater("doctor", "--error", "driver.log", "--pipeline", "no_such_file.py")

    assert done.code == 2
    assert "hint: slackwater doctor --all --error driver.log --pipeline no_such_file.py" in done.err


@pytest.mark.parametrize(
    ("text", "own", "symptoms"),
    [
        (
            "error sink-unreachable: The database: Connection refused\nhint: Error while sending\n",
            "sink-unreachable",
            [],
        ),
        ("clicks/per_page: failed: sink-unreachable: Connection refused", "sink-unreachable", []),
        ("not-a-code: Failed to find data source: kafka", None, ["source-not-found"]),
    ],
)
def test_errors_of_slackwaters_own_are_looked_up_by_their_code(
    slackwater: Slackwater, tmp_path: Path, text: str, own: str | None, symptoms: list[str]
) -> None:
    (tmp_path / "log").write_text(text)
    make_home(tmp_path, HomeSpec(run="failed"))
    with closing(sqlite3.connect(tmp_path / ".slackwater" / "ledger.db")) as ledger, ledger:
        ledger.execute(
            "UPDATE runs SET reason = ?", (text.removeprefix("error ").removeprefix("clicks/per_page: failed: "),)
        )

    alone = slackwater("doctor", "--error", "log", "--format", "json").document["streams"][0]
    recorded = slackwater("doctor", STREAM, "--format", "json").document["streams"][0]
    page = slackwater("doctor", STREAM).out

    for one in (alone, recorded):
        assert ([error["symptom"] for error in one["errors"]], one["own_codes"]) == (symptoms, [own] if own else [])
    if own is not None:
        assert f"slackwater explain {own}" in page
