"""Names and paths, relative to the checkpoint, in Spark 3.5 to 4.3."""

import re

from slackwater.core.checkpoint import StateFile, StateFileKind

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
    return f"{OFFSETS}/{batch}"


def commit_path(batch: int) -> str:
    return f"{COMMITS}/{batch}"


def source_path(source: str, name: str = "") -> str:
    return f"{SOURCES}/{source}/{name}" if name else f"{SOURCES}/{source}"


def store_path(operator: int, partition: int, store: str = DEFAULT_STORE) -> str:
    path = f"{STATE}/{operator}/{partition}"
    return path if store == DEFAULT_STORE else f"{path}/{store}"


def spark_checksum_path(path: str) -> str:
    """``N.delta.crc`` next to ``N.delta``: Spark 4.1 and later, for state files."""
    return f"{path}.crc"


def is_leftover(name: str) -> bool:
    return name.endswith(".tmp")


def parse_id(name: str) -> int | None:
    """A log entry's number; ``None`` for other names, which Spark ignores."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else None  # noqa: PLR2004  (a long)


def parse_state_file(name: str) -> StateFile | None:
    """``V.delta``, ``V.snapshot``, ``V.zip``, ``V.changelog``, the last two also as ``V_<id>`` (format 2)."""
    match = _STATE_FILE.fullmatch(name)
    return StateFile(int(match[1]), StateFileKind(match[3]), match[2]) if match else None
