"""The page in a real browser, without a network: on a screen, on a phone, in the dark and on paper."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.cli.main import main
from tests.cli.evidence.cases import CASES
from tests.support.browser import Browser, running_browser

OVERFLOWING = """
[...document.querySelectorAll('main *')]
  .filter(e => !e.closest('.scroll') && !e.closest('svg') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0
    && getComputedStyle(e).display !== 'inline')
  .map(e => e.tagName + ' ' + e.className + ' ' + e.textContent.slice(0, 60))
"""
DRAWN_TEXT = """
[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0).map(s => {
  const box = r => ({x: r.left, y: r.top, right: r.right, bottom: r.bottom})
  return {name: s.querySelector('title').textContent, box: box(s.getBoundingClientRect()),
    words: [...s.querySelectorAll('text')].map(t => ({text: t.textContent, box: box(t.getBoundingClientRect()),
      size: parseFloat(getComputedStyle(t).fontSize) * s.getBoundingClientRect().width / s.viewBox.baseVal.width}))}
})
"""
LABELS = """
[...document.querySelectorAll('svg')].map(s =>
  s.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)?.textContent.length > 0))
"""
SMALLEST_PX = 9


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, case in CASES.items():
        folder = tmp_path_factory.mktemp(name)
        arguments = case(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            assert main(["evidence", *arguments, "--out", "bundle.zip"]) == 0
        with zipfile.ZipFile(folder / "bundle.zip") as bundle:
            bundle.extractall(folder / "unpacked")
        found[name] = folder / "unpacked" / "evidence" / "evidence.html"
    return found


@pytest.mark.parametrize("width", [1280, 800, 400])
@pytest.mark.parametrize("name", CASES)
def test_nothing_overflows_or_overlaps(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    shown = browser.open(pages[name], width)

    assert shown.value("document.documentElement.scrollWidth") <= width
    assert shown.value(OVERFLOWING) == []
    drawings = shown.value(DRAWN_TEXT)
    assert all(_cut(drawing) == [] for drawing in drawings)
    assert all(_overlaps(drawing) == [] for drawing in drawings)
    assert min((word["size"] for drawing in drawings for word in drawing["words"]), default=SMALLEST_PX) >= SMALLEST_PX
    assert browser.complaints() == []


@pytest.mark.parametrize("name", CASES)
def test_the_page_asks_for_nothing(browser: Browser, pages: dict[str, Path], name: str) -> None:
    shown = browser.open(pages[name], 1280)

    assert browser.requests() == [pages[name].as_uri()]
    assert shown.value("document.scripts.length") == 0
    assert shown.value("document.querySelectorAll('[src], link, [onclick]').length") == 0


@pytest.mark.parametrize("name", CASES)
def test_the_first_screen_has_what_is_wrong_and_the_next_command(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    shown = browser.open(pages[name], 1280)
    head = json.loads(pages[name].with_name("evidence.json").read_text())["head"]

    first = shown.value("document.querySelector('.head').innerText")
    assert head["code"] in first
    assert head["text"][1:] in first
    # Commands in an advice have a box of their own.
    assert all("".join(step.split()) in "".join(first.split()) for step in (head["next"], head["advice"]) if step)
    assert shown.value("document.querySelector('.head').getBoundingClientRect().bottom") <= 900


def test_drawings_are_labelled_and_tables_have_heads(browser: Browser, pages: dict[str, Path]) -> None:
    shown = browser.open(pages["sink-ahead"], 1280)

    labels = shown.value(LABELS)
    assert len(labels) == 2 * 3
    assert all(labels)
    assert shown.value("[...document.querySelectorAll('table')].every(t => t.caption && t.tHead)")
    assert shown.value("document.querySelectorAll('svg.narrow').length") == 3


@pytest.mark.parametrize(("dark", "printed"), [(True, False), (False, True), (True, True)])
def test_text_stands_out_in_the_dark_and_on_paper(
    *, browser: Browser, pages: dict[str, Path], dark: bool, printed: bool
) -> None:
    shown = browser.open(pages["sink-ahead"], 1000, dark=dark, printed=printed)

    ink, ground = (
        _luminance(shown.value(f"getComputedStyle(document.body).{one}")) for one in ("color", "backgroundColor")
    )
    assert (ink > ground) is (dark and not printed)
    assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) > 7
    # On paper nothing can be scrolled.
    hidden = "[...document.querySelectorAll('.scroll')].filter(e => getComputedStyle(e).overflowX !== 'visible').length"
    assert (shown.value(hidden) == 0) is printed


def test_a_picture_is_not_empty(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    shown = browser.open(pages["sink-ahead"], 1280)
    shown.picture(tmp_path / "page.png")
    shown.value("document.body.replaceChildren()")
    shown.picture(tmp_path / "empty.png", 900)

    assert (tmp_path / "page.png").stat().st_size > 10 * (tmp_path / "empty.png").stat().st_size


def _cut(drawing: dict[str, Any]) -> list[str]:
    """Words that reach out of their drawing."""
    whole = drawing["box"]
    return [
        word["text"]
        for word in drawing["words"]
        if word["box"]["x"] < whole["x"] - 1
        or word["box"]["right"] > whole["right"] + 1
        or word["box"]["bottom"] > whole["bottom"] + 1
        or word["box"]["y"] < whole["y"] - 1
    ]


def _overlaps(drawing: dict[str, Any]) -> list[tuple[str, str]]:
    words = drawing["words"]
    return [
        (one["text"], other["text"])
        for index, one in enumerate(words)
        for other in words[index + 1 :]
        if _meet(one["box"], other["box"])
    ]


def _meet(one: dict[str, float], other: dict[str, float]) -> bool:
    staging = one["right"] <= other["x"] or other["right"] <= one["x"]
    # Boxes of letters are higher than the letters.
    apart = one["bottom"] - 4 <= other["y"] or other["bottom"] - 4 <= one["y"]
    return not staging and not apart


def _luminance(colour: str) -> float:
    """Of ``rgb(20, 23, 28)``, as WCAG 2.2 defines it."""
    parts = [int(part) / 255 for part in colour.partition("(")[2].partition(")")[0].split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
