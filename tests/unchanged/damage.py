"""Damage of a checkpoint that ``slackwater doctor`` knows, each made by one edit of its files."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path


def _newest(folder: Path) -> Path:
    return max((file for file in folder.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))


def _without_checksum(file: Path) -> None:
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _tear(file: Path) -> None:
    """As a full disk or a power failure leaves it."""
    file.write_bytes(file.read_bytes()[:9])
    _without_checksum(file)


def _lose(file: Path) -> None:
    file.unlink()
    _without_checksum(file)


def _before_newest(folder: Path) -> Path:
    return folder / str(int(_newest(folder).name) - 2)


def _lose_state(checkpoint: Path) -> None:
    """The partitions of the first operator; what describes the operator stays."""
    for partition in (checkpoint / "state" / "0").glob("[0-9]*"):
        shutil.rmtree(partition)


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "deleted": shutil.rmtree,
    "torn offset": lambda checkpoint: _tear(_newest(checkpoint / "offsets")),
    "torn commit": lambda checkpoint: _tear(_newest(checkpoint / "commits")),
    "lost commit": lambda checkpoint: _lose(_before_newest(checkpoint / "commits")),
    "lost offsets": lambda checkpoint: shutil.rmtree(checkpoint / "offsets"),
    "lost source log": lambda checkpoint: shutil.rmtree(checkpoint / "sources"),
    "lost query id": lambda checkpoint: _lose(checkpoint / "metadata"),
    "torn query id": lambda checkpoint: _tear(checkpoint / "metadata"),
    "lost state": _lose_state,
    "all state deleted": lambda checkpoint: shutil.rmtree(checkpoint / "state"),
}
