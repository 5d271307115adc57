"""``slackwater completion``: scripts that name every verb and option, and complete them in a real bash."""

from __future__ import annotations

import subprocess

import pytest

from slackwater.cli.common.arguments import VERBS
from tests.cli.conftest import Slackwater

ASK = """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_slackwater
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("slackwater", "st"), ["stop", "status"]),
        (("slackwater", "run", "--unt"), ["--until-caught-up"]),
        (("slackwater", "plan", "re"), ["resume", "rebuild", "replay", "reset"]),
        (("slackwater", "plan", "rebuild", "x", "--o"), ["--out"]),
        (("slackwater", "status", "--format", ""), ["text", "json"]),
        (("slackwater", "completion", ""), ["bash", "zsh", "fish", "-h", "--help"]),
        (("slackwater", "apply", "--home", "--y"), []),
    ],
    ids=" ".join,
)
def test_bash_completes(slackwater: Slackwater, words: tuple[str, ...], expected: list[str]) -> None:
    script = slackwater("completion", "bash").out
    command = ["bash", "--norc", "-c", script + ASK, "bash", *words]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)

    assert done.stderr == ""
    assert done.stdout.split() == expected


def test_bash_completes_every_verb(slackwater: Slackwater) -> None:
    script = slackwater("completion", "bash").out
    command = ["bash", "--norc", "-c", script + ASK, "bash", "slackwater", ""]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)

    assert set(done.stdout.split()) >= set(VERBS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_verb_and_option_is_in_the_script(slackwater: Slackwater, shell: str) -> None:
    script = slackwater("completion", shell).out

    for option in ("until-caught-up", "retention", "batches", "operators"):
        assert option in script
    assert [verb for verb in VERBS if verb not in script] == []
    assert "%(" not in script


def test_another_shell_is_a_wrong_argument(slackwater: Slackwater) -> None:
    done = slackwater("completion", "tcsh")

    assert done.code == 2
    assert "choose from bash, zsh, fish" in done.err.lower()
