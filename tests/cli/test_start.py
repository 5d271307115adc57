"""What the quick commands load: nothing that is heavy and not needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.test_imports import HEAVY as SPARK_AND_CLIENTS
from tests.support.homes import make_home

HEAVY = {*SPARK_AND_CLIENTS, "fsspec", "pydantic", "rocksdict", "structlog"}


@pytest.mark.parametrize(
    "command", ["--help", "completion bash", "status", "ledger per_page", "offsets per_page", "inspect per_page"]
)
def test_no_heavy_module_is_imported(command: str, tmp_path: Path) -> None:
    make_home(tmp_path)

    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "slackwater", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert done.returncode == 0, done.stderr
    assert imported & HEAVY == set()


@pytest.mark.parametrize("arguments", [["--help"], ["status"]], ids=" ".join)
def test_a_reader_that_has_enough_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slackwater", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        messages = process.stderr.read()

    assert (process.returncode, messages) == (0, b"")


@pytest.mark.parametrize("arguments", [["--version"], ["status"], ["connectors", "list"]], ids=" ".join)
def test_a_full_disk_is_messages(arguments: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "slackwater", *arguments],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )

    messages = b"error disk-full: There is no space left to write to\nhint: free some space and try again\n"
    assert (done.returncode, done.stderr) == (9, messages)


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "<&- 1>&- 2>&-"])
def test_it_may_be_started_without_a_place_for_its_output(closed: str, tmp_path: Path) -> None:
    make_home(tmp_path)
    command = ["sh", "-c", f'"$0" -m slackwater status {closed}', sys.executable]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_keeps_its_exit_code_where_nobody_can_be_messages(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slackwater", "stop", "nosuch"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.close()

    assert process.returncode == 4
