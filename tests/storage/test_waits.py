"""What a command shows while a store does not answer, and when it ends."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from slackwater.cli.main import main
from slackwater.storage import s3_filesystem
from slackwater.storage.open import open_read_store
from slackwater.storage.s3_filesystem import S3FileSystem
from slackwater.storage.waits import SHOWN_AFTER_S, SHOWN_AGAIN_S, Waits
from tests.support.s3 import forget_clients


def test_the_longest_operation_is_reported_and_not_too_often() -> None:
    now_s = 100.0
    shown: list[tuple[str, int]] = []
    waits = Waits(lambda: now_s)
    waits.report_to(None)
    with waits.waiting_for("s3://a"):
        now_s += SHOWN_AFTER_S
        waits.look()
        assert shown == []
        waits.report_to(lambda location, waited_s: shown.append((location, waited_s)))
        with waits.waiting_for("s3://b"):
            waits.look()
            now_s += SHOWN_AGAIN_S - 1
            waits.look()
            assert shown == [("s3://a", 4)]
            now_s += 1
            waits.look()
    waits.look()
    assert shown == [("s3://a", 4), ("s3://a", 14)]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where connections are accepted and nothing is answered."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield int(listener.getsockname()[1])


@pytest.fixture
def unreachable(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """S3 at a server that does not answer, waited for a tenth of what is usual."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setattr(S3FileSystem, "read_timeout", S3FileSystem.read_timeout / 10)
    monkeypatch.setattr(s3_filesystem, "NO_ANSWER_S", s3_filesystem.NO_ANSWER_S / 10)
    forget_clients()
    yield monkeypatch
    forget_clients()


@pytest.mark.usefixtures("unreachable")
def test_a_server_that_does_not_answer_is_asked_twice(capsys: pytest.CaptureFixture[str]) -> None:
    started_s = time.monotonic()
    assert main(["inspect", "s3://bucket/checkpoint"]) == 9
    assert time.monotonic() - started_s < 15
    errors = capsys.readouterr().err
    assert "error store-unreachable: " in errors
    assert "no answer after 2 attempts in " in errors


def test_as_many_attempts_are_made_as_the_user_has_set(
    unreachable: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unreachable.setenv("AWS_MAX_ATTEMPTS", "3")
    assert main(["inspect", "s3://bucket/checkpoint"]) == 9
    assert "no answer after 3 attempts in " in capsys.readouterr().err


@pytest.mark.usefixtures("unreachable")
def test_a_bucket_that_cannot_be_asked_for_is_not_absent() -> None:
    with pytest.raises(OSError, match="no answer after 2 attempts"):
        open_read_store("s3://bucket").exists("")


def test_a_library_logs_nothing_of_what_the_command_reports() -> None:
    """Without a network gcsfs logs a traceback, which Python prints where nobody has set a handler."""
    program = (
        "import logging; from slackwater.storage.open import open_read_store\n"
        "open_read_store('gs://bucket/checkpoint'); logging.getLogger('gcsfs.retry').error('out of retries')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_store_of_google_that_cannot_be_reached_is_given_up_soon() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    began = time.monotonic()

    done = subprocess.run(
        [sys.executable, "-m", "slackwater", "doctor", "gs://bucket/checkpoint"],
        env={**os.environ, "STORAGE_EMULATOR_HOST": nobody},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert time.monotonic() - began < 25
    assert "error store-unreachable: " in done.stderr
    assert "Traceback" not in done.stderr
