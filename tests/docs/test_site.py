"""The documentation as a site: built without a warning, and shown without a network."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from slackwater.core.settings import KNOWN_KEYS
from tests.docs.reader import ROOT
from tests.support.browser import running_browser

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
PAGES_MIN = 100
OVERFLOWING = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


class Loaded(HTMLParser):
    """Addresses that a browser asks for to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("rel", "canonical") not in attrs:
            self.addresses += [value for name, value in attrs if (tag, name) in LOADED and value]


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


def test_a_browser_shows_the_pages_from_a_disk(site: Path, tmp_path: Path) -> None:
    with running_browser(tmp_path / "profile") as browser:
        for name in ("index.html", "guides/deleted-checkpoint.html", "concepts/number-line.html", "errors.html"):
            for width in (1280, 400):
                page = browser.open(site / name, width)
                assert [one for one in browser.requests() if not one.startswith(("file:", "data:", "blob:"))] == []
                assert page.value("[...document.images].every(one => one.naturalWidth > 0)"), name
                assert not page.value(OVERFLOWING), (name, width)


def test_the_page_of_settings_has_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    cells = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`\[?([a-z_]+)\]?`", cells)) == KNOWN_KEYS
