"""The verbs, their arguments and the functions that are called with these."""

import inspect
import subprocess
from pkgutil import resolve_name

import pytest

from slackwater.cli.common.arguments import VERBS, Parser, declare_verb
from tests.cli.conftest import Slackwater

VERBS_OF_GROUPS: dict[str, list[list[str]]] = {
    "plan": [["rebuild"]],
    "home": [["accept"]],
    "connectors": [["list"], ["fetch"]],
}
COMMANDS = [[verb, *second] for verb in VERBS for second in VERBS_OF_GROUPS.get(verb, [[]])]


def test_all_verbs_are_listed(slackwater: Slackwater) -> None:
    expected = slackwater("--help").out

    assert all(f"\n  {name} " in expected for name in VERBS), expected


@pytest.mark.parametrize("verb", COMMANDS, ids=" ".join)
def test_a_verb_is_given_what_its_parser_declares(verb: list[str]) -> None:
    parser = Parser("slackwater")
    declare_verb(verb[0], parser)

    others = {"demo": [], "sinks": [], "connectors list": [], "completion": ["bash"], "prune": ["--keep", "1"]}
    others["evidence"] = ["word", "--out", "bundle.zip"]
    others["home accept"] = ["--moved"]
    words = others.get(" ".join(verb), ["word"])
    options = vars(parser.parse_args([*verb[1:], *words]))

    function = resolve_name(options.pop("verb"))
    signature = inspect.signature(function)
    signature.bind(**options)
    if not any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()):
        assert options.keys() == signature.parameters.keys()


@pytest.mark.parametrize("verb", COMMANDS, ids=" ".join)
def test_every_verb_explains_itself(slackwater: Slackwater, verb: list[str]) -> None:
    done = slackwater(*verb, "--help")

    assert done.code == 0
    assert done.out.startswith(f"usage: slackwater {' '.join(verb)} [-h]")


# ``slackwater completion``: scripts that name every verb and option, and complete them in a real bash.


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
    done = slackwater("plan", "reset", "s", "--from", "latest", "--output", "x")
    assert "Argument --output: choose from swap, clear, keep; found 'x'" in " ".join(done.err.split())
