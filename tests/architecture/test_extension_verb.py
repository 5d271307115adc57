"""A verb of another distribution, all of it in this file: listed, completed, called, in JSON and with errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.reference_pages import PAGES
from slackwater.cli.common.arguments import Format, Parser, add_format, add_home, natural
from slackwater.cli.common.console import prepare, print_json, write
from slackwater.cli.common.verb import VERBS, Verb
from slackwater.cli.main import main
from slackwater.core.errors import Refused
from tests.support.extensions import Installed

SUMMARY = "Show the tides of the next days."


def declare(parser: Parser) -> None:
    parser.add_argument("--days", type=natural, metavar="N", default=1, help="how many days")
    add_home(parser)
    add_format(parser)
    parser.set_defaults(verb=tides)


def tides(*, days: int, home: str | None, shown_as: Format) -> int:
    prepare(home, shown_as)
    if days == 0:
        raise Refused("no-days", "There is no tide in no day", hint="slackwater tides --days 1")
    if shown_as is Format.JSON:
        print_json({"schema": "tides/1", "tides": 2 * days})
    else:
        write(f"{2 * days} tides\n")
    return 0


VERB = Verb(SUMMARY, declare)


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """What is printed while the verb is registered."""
    VERBS.register("tides", VERB)
    yield capsys
    VERBS.unregister("tides")


def test_it_is_listed_last_and_explains_itself(out: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert out.readouterr().out.rstrip().endswith(f"    tides        {SUMMARY}")

    assert main(["tides", "--help"]) == 0
    shown = out.readouterr().out
    assert shown.startswith("usage: slackwater tides [-h] [--days N]")
    assert SUMMARY in shown


def test_it_is_called_and_has_a_document(out: pytest.CaptureFixture[str]) -> None:
    assert main(["tides", "--days", "3"]) == 0
    assert out.readouterr().out == "6 tides\n"

    assert main(["tides", "--format", "json"]) == 0
    assert json.loads(out.readouterr().out) == {"schema": "tides/1", "tides": 2}


def test_its_errors_are_those_of_every_verb(out: pytest.CaptureFixture[str]) -> None:
    assert main(["tides", "--days", "0"]) == 5
    assert out.readouterr().err == ("error no-days: There is no tide in no day\nhint: slackwater tides --days 1\n")

    assert main(["tides", "--days", "0", "--format", "json"]) == 5
    assert json.loads(out.readouterr().err)["error"]["code"] == "no-days"

    assert main(["tides", "--dayz", "1"]) == 2
    assert "did you mean --days?" in out.readouterr().err

    assert main(["tide"]) == 2
    assert "did you mean tides?" in out.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_it(shell: str, out: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0

    script = out.readouterr().out
    assert "tides" in script
    assert "days" in script


def test_a_name_is_not_used_twice() -> None:
    with pytest.raises(ValueError, match="status"):
        VERBS.register("status", VERB)


@pytest.mark.usefixtures("out")
def test_the_page_of_verbs_has_it() -> None:
    page = PAGES["verbs"]()

    assert f"\n## tides\n\n{SUMMARY}\n" in page
    assert "| `--days` | any | how many days |" in page


def test_an_installed_distribution_adds_it_by_an_entry_point(tmp_path: Path) -> None:
    installed = Installed(tmp_path, Path(__file__), "slackwater.verbs", "tides", "VERB")

    assert json.loads(installed.slackwater(["tides", "--format", "json"], tmp_path))["tides"] == 2
