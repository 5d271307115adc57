"""Hooks of MkDocs: the site has the files that its pages link to, and a search that finds what users ask for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
PAGES = {"overview.md": "README.md"} | {name: name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")}
"""Pages at the top of the repository, by their place in the site."""
SEARCHED = {
    "decisions/": {"exclude": True},
    "examples/": {"exclude": True},
    "CHANGELOG.md": {"exclude": True},
    "CONTRIBUTING.md": {"boost": 0.5},
    "ARCHITECTURE.md": {"boost": 0.5},
    "guides/": {"boost": 2},
}
"""How the search treats pages, by the start of their path."""
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
HEADING = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the top of the repository, and all files that some page links to."""
    for name, source in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for path in sorted(set(_linked_outside())):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links to files outside of docs/ as links to their copies in the site. Says how the page is searched."""
    page.meta["search"] = next((how for start, how in SEARCHED.items() if page.file.src_uri.startswith(start)), {})
    source = _source(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        target = _site_path(Path(os.path.normpath(source.parent / link["path"])))
        here = Path(page.file.src_uri).parent
        return os.path.relpath(target, here) + (link["anchor"] or "") if target else link[0]

    return LINK.sub(inside, markdown)


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Cells with their column's heading, which a narrow screen shows; errors.md without 400 codes in its contents."""
    if page.file.src_uri == "errors.md":
        for item in page.toc:
            for inner in item.children:
                inner.children = []
    return TABLE.sub(lambda table: _labelled(table[0]), html)


def _labelled(table: str) -> str:
    headings = [re.sub(r"<[^>]*>", "", heading) for heading in HEADING.findall(table)]

    def row(found: re.Match[str]) -> str:
        columns = iter(headings)
        return re.sub(r"<td", lambda _: f'<td data-label="{next(columns, "")}"', found[0])

    return ROW.sub(row, table)


def _source(uri: str) -> Path:
    """The file of the repository that a page is made of."""
    if uri in PAGES:
        return ROOT / PAGES[uri]
    return ROOT / uri if uri.startswith("examples/") else ROOT / "docs" / uri


def _site_path(path: Path) -> str | None:
    """Where a file of the repository is in the site; None where it is not there."""
    if path == ROOT / "README.md":
        return "overview.md"
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    if path.is_dir() and path.is_relative_to(ROOT):
        # A folder has no page: its README, or the list of examples that has it.
        return "examples/README.md"
    return path.relative_to(ROOT).as_posix() if path.is_file() and path.is_relative_to(ROOT) else None


def _linked_outside() -> Iterator[Path]:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("examples/README.md", *PAGES.values()))]
    for page in pages:
        for link in LINK.finditer(page.read_text(encoding="utf-8")):
            path = Path(os.path.normpath(page.parent / link["path"]))
            if path.is_file() and path.is_relative_to(ROOT / "examples"):
                yield path
    yield ROOT / "examples" / "README.md"
