"""Commands in findings."""

from __future__ import annotations

from slackwater.core.commands import command, rebuild_command
from slackwater.core.escaping import quoted
from slackwater.core.facts import CheckpointSeen, Facts

_ID_CHECKSUM = ".metadata.crc"


def resume(facts: Facts) -> str:
    """Plans the least change after which a start is exact."""
    return command("plan", "resume", facts.name)


def rebuild(facts: Facts) -> str:
    return rebuild_command(facts.snapshot)


def replay_from(facts: Facts, batch: int) -> str:
    """Processes batches from this one on again; an output that cannot be cut keeps its rows."""
    kept = () if facts.snapshot.output.can_cut else ("--output", "keep")
    return command("plan", "replay", facts.name, "--from", f"batch:{batch}", *kept, *facts.snapshot.stream.session)


def move_away(checkpoint: CheckpointSeen, path: str) -> str:
    """Moves a log file with Hadoop's checksum out of the checkpoint; nothing is deleted."""
    folder, _, name = path.rpartition("/")
    root = checkpoint.location.rstrip("/")
    if "://" in root:
        return f"move {root}/{path} to a folder outside of the checkpoint"
    hidden = f"{folder}/.{name}.crc"
    names = [path, hidden] if checkpoint.has(hidden) else [path]
    files = " ".join(quoted(f"{root}/{one}") for one in names)
    removed = quoted(f"{root}.removed/{folder}")
    return f"mkdir -p {removed} && mv -n {files} {removed}/"


def move_checkpoint_away(checkpoint: CheckpointSeen) -> str:
    """Moves the checkpoint next to itself, so that its query starts with a new one."""
    root = checkpoint.location.rstrip("/")
    if "://" in root:
        return f"move {root} to another place"
    return f"mv -n {quoted(root)} {quoted(root + '.removed')}"


def write_query_id(checkpoint: CheckpointSeen, query_id: str | None) -> str:
    """Writes ``metadata`` as Spark does, or where to find the id.

    Hadoop's checksum is removed first: its local file system refuses other bytes.
    """
    root = checkpoint.location.rstrip("/")
    checksum = f"{root}/{_ID_CHECKSUM}" if checkpoint.has(_ID_CHECKSUM) else None
    if query_id is None or "://" in root:
        known = query_id or "the id of the query, which its driver log and its progress events have as id"
        delete = f"delete {checksum}, the checksum of the file before, and " if checksum else ""
        return f'{delete}write {{"id":"<id>"}} into {root}/metadata, without a line break; the id is {known}'
    content = f'{{"id":"{query_id}"}}'
    delete = f"rm -f {quoted(checksum)} && " if checksum else ""
    return f"{delete}printf %s {quoted(content)} > {quoted(root + '/metadata')}"
