"""Names that only one module may know."""

from __future__ import annotations

from pathlib import Path

SINK_LOG = "_spark_metadata"


def test_the_folder_of_the_file_sinks_manifest_is_spelled_in_one_module(root: Path, source_files: list[Path]) -> None:
    found = [str(file.relative_to(root)) for file in source_files if SINK_LOG in file.read_text()]
    assert found == ["src/slackwater/formats/compactible.py"]
