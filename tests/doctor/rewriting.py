"""Edits that change what a file of a checkpoint says, with Hadoop's checksum of it deleted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_PATH = re.compile(r'"path":"[^"]*/([^/"]+)"')


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    """An edit that replaces a string, which must be there."""

    def edit(case: Path) -> None:
        file = case / name
        text = file.read_text()
        assert old in text, f"{name} has no {old}"
        _write(file, text.replace(old, new))

    return edit


def reread(*names: str) -> Callable[[Path], None]:
    """An edit that gives the files in logs of sources their paths in this copy of the case."""

    def edit(case: Path) -> None:
        for name in names:
            for file in sorted((case / name).glob("[0-9]*")):
                _write(file, _PATH.sub(lambda found: f'"path":"file://{case}/input/{found[1]}"', file.read_text()))

    return edit


def watermark(batch: int, milliseconds: int) -> Callable[[Path], None]:
    """An edit of the commit of a batch."""

    def edit(case: Path) -> None:
        _write(case / f"checkpoint/commits/{batch}", f'v1\n{{"nextBatchWatermarkMs":{milliseconds}}}')

    return edit


def delete_folder(name: str) -> Callable[[Path], None]:
    """An edit that deletes the files of a folder, with those below it."""

    def edit(case: Path) -> None:
        for file in sorted((case / name).rglob("*")):
            if file.is_file():
                file.unlink()

    return edit


def copy_folder(name: str, to: str) -> Callable[[Path], None]:
    """An edit that copies the files of a folder into another one."""

    def edit(case: Path) -> None:
        for file in sorted((case / name).iterdir()):
            if file.is_file():
                target = case / to / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())

    return edit


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
