"""Hooks of MkDocs: the site has the files that its pages link to, and the README as its first page."""

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
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the first page, the other pages at the top of the repository, and all files that some page links to."""
    files.append(File.generated(config, "index.md", content=_first_page()))
    for name in PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for path in sorted(set(_linked_outside())):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links to files outside of docs/ as links to their copies in the site."""
    source = _source(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        target = _site_path(Path(os.path.normpath(source.parent / link["path"])))
        here = Path(page.file.src_uri).parent
        return os.path.relpath(target, here) + (link["anchor"] or "") if target else link[0]

    return LINK.sub(inside, markdown)


def _first_page() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def _source(uri: str) -> Path:
    """The file of the repository that a page is made of."""
    if uri == "index.md":
        return ROOT / "README.md"
    return ROOT / uri if uri in PAGES or uri.startswith("examples/") else ROOT / "docs" / uri


def _site_path(path: Path) -> str | None:
    """Where a file of the repository is in the site; None where it is not there."""
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    if path.is_dir() and path.is_relative_to(ROOT):
        # A folder has no page: its README, or the list of examples that has it.
        return "examples/README.md"
    return path.relative_to(ROOT).as_posix() if path.is_file() and path.is_relative_to(ROOT) else None


def _linked_outside() -> Iterator[Path]:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "examples/README.md", *PAGES))]
    for page in pages:
        for link in LINK.finditer(page.read_text(encoding="utf-8")):
            path = Path(os.path.normpath(page.parent / link["path"]))
            if path.is_file() and path.is_relative_to(ROOT / "examples"):
                yield path
    yield ROOT / "examples" / "README.md"
