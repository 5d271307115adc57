"""The pages that are made from the source; ``scripts/generate`` writes them, and ``scripts/check`` compares them.

python -m scripts.generated_pages [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts import conformance, decision_index, error_codes, recovery, reference_pages, sink_table

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES: Mapping[str, Callable[[], str]] = {
    "decisions/README.md": lambda: decision_index.page(decision_index.decisions()),
    "errors.md": error_codes.page,
    "reference/conformance.md": conformance.page,
    "reference/recovery.md": recovery.page,
    "sinks.md": sink_table.page,
    **{f"reference/{name}.md": page for name, page in reference_pages.PAGES.items()},
}


def main(arguments: list[str]) -> int:
    """Write each page that differs from its file, or with ``--check`` only name it; 1 if ``--check`` names any."""
    only_compares = arguments == ["--check"]
    if arguments and not only_compares:
        sys.stderr.write("usage: scripts/generate [--check]\n")
        return 2
    pages = {DOCS / name: page() for name, page in PAGES.items()}
    outdated = [file for file, page in pages.items() if not file.exists() or file.read_text() != page]
    for file in outdated:
        if not only_compares:
            file.write_text(pages[file])
        sys.stdout.write(f"{file.relative_to(DOCS.parent)}: {'outdated' if only_compares else 'written'}\n")
    if outdated and only_compares:
        sys.stdout.write("hint: scripts/generate\n")
    return int(bool(outdated) and only_compares)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
