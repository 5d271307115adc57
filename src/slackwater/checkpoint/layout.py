"""Names and paths of a checkpoint, as Spark 3.5 to 4.3 lays it out. All paths are relative to its root."""

from __future__ import annotations

import re

from slackwater.core.state import StateFile, StateFileKind

METADATA = "metadata"
OFFSETS = "offsets"
COMMITS = "commits"
SOURCES = "sources"
STATE = "state"
SST_FOLDERS = frozenset({"SSTs", "logs"})
DEFAULT_STORE = "default"
"""The store without a directory of its own."""

# A version is a Long: every number of 18 digits fits.
_STATE_FILE = re.compile(r"(\d{1,18})(?:_([0-9A-Za-z-]+))?\.(delta|snapshot|zip|changelog)")


def offset_path(batch: int) -> str:
    """``offsets/N``: the plan of batch N."""
    return f"{OFFSETS}/{batch}"


def commit_path(batch: int) -> str:
    """``commits/N``: batch N is done."""
    return f"{COMMITS}/{batch}"


def source_path(source: str, name: str = "") -> str:
    """The log of a source, or one file of it."""
    return f"{SOURCES}/{source}/{name}" if name else f"{SOURCES}/{source}"


def store_path(operator: int, partition: int, store: str = DEFAULT_STORE) -> str:
    """The directory that holds the state files of one store."""
    path = f"{STATE}/{operator}/{partition}"
    return path if store == DEFAULT_STORE else f"{path}/{store}"


def spark_checksum_path(path: str) -> str:
    """``N.delta.crc`` next to ``N.delta``: written by Spark 4.1 and later for state files."""
    return f"{path}.crc"


def is_leftover(name: str) -> bool:
    """Whether the name is that of a write that never ended, which Spark ignores."""
    return name.endswith(".tmp")


def parse_id(name: str) -> int | None:
    """The number an entry of a log is named by; ``None`` for other names, which Spark ignores."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else None  # noqa: PLR2004  (a long)


def parse_state_file(name: str) -> StateFile | None:
    """``V.delta``, ``V.snapshot``, ``V.zip``, ``V.changelog``, the last two also as ``V_<id>`` (format 2)."""
    match = _STATE_FILE.fullmatch(name)
    return StateFile(int(match[1]), StateFileKind(match[3]), match[2]) if match else None
