"""What a wheel and an sdist get beside the code: the examples, and the README as their description."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(?<=\]\()(?!https?:|#)(?P<path>[^)\s]+)(?=\))")


class ExamplesHook(BuildHookInterface[Any]):
    """Put `examples/` into the wheel as `slackwater/_examples`; an editable install reads them where they are."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        build_data["force_include"][str(Path(self.root, "examples"))] = "slackwater/_examples"


class DescriptionHook(MetadataHookInterface):
    """The README with absolute links and pictures: an index shows it outside of the repository."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository)}


def absolute(text: str, repository: str) -> str:
    """A Markdown text whose relative links lead into the repository, pictures to the files themselves."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match["path"].endswith((".svg", ".png")) else "blob"
        return f"{repository}/{kind}/main/{match['path']}"

    return RELATIVE.sub(link, text)
