from slackwater.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES, STATE
from slackwater.core.commands import command
from slackwater.core.errors import NotFound
from slackwater.formats.compactible import SINK_LOG, parse_entry_name
from slackwater.storage.protocols import Entry, ReadStore

_OWN_DIRECTORIES = frozenset({OFFSETS, COMMITS, SOURCES, STATE})
_SHOWN = 5
_CHILDREN_LOOKED_AT = 50


def require_checkpoint(store: ReadStore) -> None:
    """Raises ``NotFound`` (``not-a-checkpoint``) with a description of the location."""
    entries = store.list()
    if is_checkpoint(entries):
        return
    found, hint = describe(store, entries)
    raise NotFound(
        "not-a-checkpoint",
        "This is not a checkpoint",
        where=store.location,
        expected="a directory with offsets, commits and metadata",
        found=found,
        hint=hint,
    )


def is_checkpoint(entries: tuple[Entry, ...]) -> bool:
    """Whether the entries are from a checkpoint's root, even of a damaged checkpoint."""
    directories = {entry.name for entry in entries if entry.is_dir}
    files = {entry.name for entry in entries if not entry.is_dir}
    if {OFFSETS, COMMITS} & directories:
        return True
    # A query that was killed at its first start leaves `metadata` and Hadoop's checksum of it; other programs write
    # files of this name, too.
    return METADATA in files and (bool(_OWN_DIRECTORIES & directories) or len(entries) <= 2)  # noqa: PLR2004


def describe(store: ReadStore, entries: tuple[Entry, ...]) -> tuple[str, str]:
    names = {entry.name for entry in entries}
    if not entries:
        hint = "give the checkpointLocation of a streaming query"
        local = store.local_path("")
        if local is not None and store.exists(""):
            return ("a file", hint) if _is_file(store) else ("an empty folder", hint)
        # In an object store an empty folder and an absent one look alike.
        return ("nothing", hint) if local is not None else ("nothing, or an empty folder", hint)
    if SINK_LOG in names:
        batches = [parsed[0] for entry in store.list(SINK_LOG) if (parsed := parse_entry_name(entry.name))]
        newest = f" (newest batch {max(batches)})" if batches else ""
        return f"an output directory of the file sink{newest}", "inspect the checkpoint of the query that writes it"
    if "_delta_log" in names:
        return "a Delta table", "inspect the checkpoint of the query that writes or reads it"
    directories = sorted(entry.name for entry in entries if entry.is_dir)
    if METADATA in directories and any(entry.name.endswith(".metadata.json") for entry in store.list(METADATA)):
        return "an Iceberg table", "inspect the checkpoint of the query that writes or reads it"
    last = store.location.rstrip("/").rpartition("/")[2]
    numbered = any(name.isdigit() or parse_entry_name(name) for name in names)
    inside = f"the directory {last} inside a checkpoint" if last in _OWN_DIRECTORIES and numbered else None
    if inside:
        return inside, command("inspect", store.location.rstrip("/").rpartition("/")[0])
    # Each child is listed, which is a request on a remote store. Hidden ones are staging and old checkpoints: last.
    directories.sort(key=lambda name: name.startswith("."))
    children = [name for name in directories[:_CHILDREN_LOOKED_AT] if is_checkpoint(store.list(name))]
    if children:
        shown = ", ".join(children[:_SHOWN]) + (" ..." if len(children) > _SHOWN else "")
        return f"a parent of checkpoints: {shown}", command("inspect", f"{store.location.rstrip('/')}/{children[0]}")
    return f"a directory of {len(entries)} other entries", "give the checkpointLocation of a streaming query"


def _is_file(store: ReadStore) -> bool:
    try:
        store.read("")
    except OSError:
        return False
    return True
