"""The documentation as a site: built without a warning, and shown without a network."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from scripts.decision_index import decisions
from slackwater.core.settings import KNOWN_KEYS
from slackwater.diagnose.catalogue import error_codes
from tests.docs.reader import ROOT
from tests.support.browser import Opened, running_browser

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
PAGES_MIN = 100
QUESTIONS = {
    "install": "install.html",
    "MERGE": "guides/foreach-batch.html",
    "deleted checkpoint": "guides/deleted-checkpoint.html",
    "databricks": "faq.html",
    "kubernetes": "guides/service.html",
    "exit codes": "exit-codes.html",
    "argparse": "guides/run.html",
    "late rows": "faq.html",
    "undo": "guides/undo.html",
    "duplicates": "faq.html",
}
"""In an order in which no expected page is among the first three of the question before."""
TYPED = """(query => {
    query.focus(); query.value = "QUESTION"; query.dispatchEvent(new Event("keyup", {bubbles: true}))
})(document.querySelector("[data-md-component=search-query]"))"""
FIRST = """[...document.querySelectorAll(".md-search-result__item")].slice(0, 3)
    .map(one => one.querySelector("a").href.split(/[?#]/)[0])"""
FOUND = f"""{FIRST}.some(one => one.endsWith("/EXPECTED"))"""
SETTLED_S = 10
WIDTHS = (390, 1366, 1920)
CLIPPED = """[document.documentElement, ...document.querySelectorAll(
    ".md-content pre > code, .md-content td, .md-typeset__scrollwrap, .md-typeset__table"
)].filter(one => one.clientWidth && one.scrollWidth > one.clientWidth + 1).map(one => one.innerText.slice(0, 60))"""
COPIED = """[...document.querySelectorAll("pre > code")].map(code => {
    code.setAttribute("data-md-copying", "")
    return code.innerText.trim()
})"""
"""The text that the button of a block of code copies, as the theme does it."""


class Loaded(HTMLParser):
    """Addresses that a browser asks for to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("rel", "canonical") not in attrs:
            self.addresses += [value for name, value in attrs if (tag, name) in LOADED and value]


def settled(page: Opened, expression: str, *, expected: object) -> object:
    """The value of the expression as soon as it is the expected one, else after some seconds."""
    deadline = time.monotonic() + SETTLED_S
    while (value := page.value(expression)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return value


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run([ROOT / "scripts" / "site", folder], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > PAGES_MIN
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses
        assert [one for one in loaded.addresses if re.match(r"(https?:)?//", one)] == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")) == [], style


def test_a_browser_shows_every_page_from_a_disk_and_cuts_nothing_off(site: Path, tmp_path: Path) -> None:
    with running_browser(tmp_path / "profile") as browser:
        for file in sorted(file for file in site.rglob("*.html") if not {"decisions", "examples"} & {*file.parts}):
            page = browser.open(file, WIDTHS[0])
            assert [one for one in browser.requests() if not one.startswith(("file:", "data:", "blob:"))] == []
            assert page.value("[...document.images].every(one => one.naturalWidth > 0)"), file
            for width in WIDTHS:
                page.resize(width)
                assert settled(page, CLIPPED, expected=[]) == [], (file, width)


def test_commands_are_copied_without_prompts_and_output(site: Path, tmp_path: Path) -> None:
    with running_browser(tmp_path / "profile") as browser:
        copied = browser.open(site / "tutorial.html", 1366).value(COPIED)
    assert "slackwater run clicks.py &\nkill -9 $!" in [re.sub(r"\n+", "\n", block) for block in copied]
    assert [block for block in copied if block.startswith("$")] == []


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("from_disk", [True, False])
def test_the_search_finds_the_page_among_the_first_three(site: Path, tmp_path: Path, *, from_disk: bool) -> None:
    with running_browser(tmp_path / "profile") as browser, served(site) as address:
        page = browser.open(site / "index.html" if from_disk else f"{address}/index.html", 1366)
        page.value("document.querySelector('label[for=__search]').click()")
        for question, expected in QUESTIONS.items():
            page.value(TYPED.replace("QUESTION", question))
            found = settled(page, FOUND.replace("EXPECTED", expected), expected=True)
            assert found is True, (question, page.value(FIRST))


def test_every_error_has_an_anchor(site: Path) -> None:
    page = (site / "errors.html").read_text(encoding="utf-8")
    assert {code for code in error_codes() if f'id="{code}"' not in page} == set()


def test_the_page_of_settings_has_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    cells = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`\[?([a-z_]+)\]?`", cells)) == KNOWN_KEYS


# The index of decisions is complete, and what modules and pages cite in docs/ is there.


CITED_FILE = re.compile(r"\bdocs/[\w./-]+\.md\b")
CITED_SECTIONS = re.compile(r"docs/format\.md, sections? ([\d, and]+)")
CITED_DECISION = re.compile(r"\b[Dd]ecision (\d{4})\b")
ELSEWHERE = re.compile(r"checkpoint-format|\bthe design\b.*section|rebuild\.md")
"""Papers that are not part of this repository."""
MANY = 20


def _texts(*folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".md"}:
                yield str(path.relative_to(ROOT)), path.read_text()
    for path in sorted(ROOT.glob("*.md")):
        yield path.name, path.read_text()


def test_a_decision_is_changed_by_later_ones_that_exist() -> None:
    numbers = [one.number for one in decisions()]
    unknown = [(one.number, later) for one in decisions() for later in one.later if later not in numbers]

    assert unknown == []
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("heading", ["# 0042 A title", "# 0041 A title\n\nStatus: superseded by 0043.", "A title"])
def test_a_heading_must_have_the_number_of_its_file(tmp_path: Path, heading: str) -> None:
    (tmp_path / "0041-a-title.md").write_text(f"{heading}\n\nDecided.\n")

    if heading.startswith("# 0041"):
        assert [(one.status, one.later) for one in decisions(tmp_path)] == [("superseded by 0043", ("0043",))]
    else:
        with pytest.raises(ValueError, match="0041"):
            decisions(tmp_path)


def test_every_page_that_is_cited_exists() -> None:
    cited = {
        (name, file)
        for name, text in _texts("src", "scripts", "tests", "docs", "examples")
        for file in CITED_FILE.findall(text)
        if not name.startswith("tests/docs/")
    }

    assert [one for one in sorted(cited) if not (ROOT / one[1]).exists()] == []


def test_every_module_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    package = ROOT / "src/slackwater"
    named = {name for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+)`", text) if (package / name.split("/")[0]).is_dir()}

    assert len(named) > MANY
    assert [one for one in sorted(named) if not list(package.glob(f"{one}*"))] == []


def test_every_section_of_the_format_that_is_cited_exists() -> None:
    there = set(re.findall(r"^## (\d+)\. ", (ROOT / "docs/format.md").read_text(), re.MULTILINE))
    cited = {
        (name, number)
        for name, text in _texts("src", "tests")
        for sections in CITED_SECTIONS.findall(text)
        for number in re.findall(r"\d+", sections)
    }

    assert cited
    assert [one for one in sorted(cited) if one[1] not in there] == []


def test_every_decision_that_is_named_exists() -> None:
    there = {one.number for one in decisions()}
    named = {
        (name, number) for name, text in _texts("src", "scripts", "docs") for number in CITED_DECISION.findall(text)
    }

    assert [one for one in sorted(named) if one[1] not in there] == []


def test_no_module_cites_what_is_not_in_the_repository() -> None:
    citing = [(name, found[0]) for name, text in _texts("src", "docs") if (found := ELSEWHERE.search(text))]

    assert citing == []
