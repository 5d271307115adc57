"""A home with its ledger, opened for a command."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.commands import command
from slackwater.core.errors import DataError, FormatError, NotFound, Refused
from slackwater.core.escaping import printable
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.core.settings import Settings, check_owner
from slackwater.formats.text_log import parse_query_metadata
from slackwater.ledger.database import parse_url
from slackwater.ledger.home import JOURNAL, PLAN_FILE, Home, StreamFile, read_stream_file, streams_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import METADATA
from slackwater.ledger.sqlite import Say
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri, local_path_of, open_read_store, resolved
from slackwater.storage.protocols import ReadStore

_MOST_BESIDE = 1000


FiledStream = tuple[str, StreamFile, str]
"""Name, ``stream.json`` and checkpoint in use of a stream, without a ledger."""


def find_stream(ledger: Ledger, name: str) -> StreamRecord:
    """Find a stream. Raises NotFound (``stream-unknown``, ``location-unknown``), UsageError (``stream-ambiguous``)."""
    if name in ledger.stream_names():
        return ledger.stream(name)
    if not (is_uri(name) or name.startswith(("/", "./", "../", "~")) or name.count("/") > 1):
        try:
            return ledger.find_stream(name)
        except NotFound:
            # A relative path looks as pipeline/stream does, also that of a checkpoint which was deleted.
            if not exists(name) and stream_at(ledger, name) is None:
                raise
    found = stream_at(ledger, name)
    if found is not None:
        return found
    raise NotFound(
        "location-unknown",
        "The ledger has no stream whose checkpoint in use is at this location",
        where=name,
        found=", ".join(stream.full_name for stream in ledger.streams()) or "no stream",
        hint=f"record it: {command('adopt', 'LOCATION')}; what it holds is shown by {command('inspect', 'LOCATION')}",
    )


def stream_at(ledger: Ledger, location: str) -> StreamRecord | None:
    wanted = resolved(location)
    for stream in ledger.streams():
        current = ledger.generation(stream.full_name, stream.current_generation)
        if resolved(current.location) == wanted:
            return stream
    return None


def stream_moved_to(ledger: Ledger, location: str) -> StreamRecord | None:
    """The stream whose query id is at this place, and whose recorded place no longer exists. ``None`` for a copy, and
    while an operation moves checkpoints.
    """
    query_id = _query_id(open_read_store(location))
    if query_id is None:
        return None
    for stream in ledger.streams():
        current = ledger.generation(stream.full_name, stream.current_generation)
        if stream.is_watched and current.query_id == query_id and ledger.open_operation(stream.full_name) is None:
            return None if open_read_store(current.location).exists("") else stream
    return None


def moved_beside(ledger: Ledger, stream: StreamRecord) -> str | None:
    """The only folder next to a watched stream's missing checkpoint with its query. It may be a backup, so only a start
    with this location records it.
    """
    current = ledger.generation(stream.full_name, stream.current_generation)
    recorded = local_path_of(current.location)
    if not stream.is_watched or recorded is None or current.query_id is None or exists(recorded):
        return None
    if ledger.open_operation(stream.full_name) is not None:
        return None
    parent = Path(recorded).parent
    names = [one.name for one in open_read_store(str(parent)).list() if one.is_dir and not one.name.startswith(".")]
    beside = [str(parent / name) for name in names[:_MOST_BESIDE]]
    found = [place for place in beside if _query_id(open_read_store(place)) == current.query_id]
    return found[0] if len(found) == 1 else None


def record_move(ledger: Ledger, stream: StreamRecord, location: str) -> None:
    current = ledger.generation(stream.full_name, stream.current_generation)
    if resolved(current.location) != resolved(location):
        ledger.update_generation(stream.full_name, current.number, location=location)


def _query_id(store: ReadStore) -> str | None:
    try:
        return parse_query_metadata(store.read(METADATA))
    except (OSError, FormatError):
        # Without it Spark starts a new query there.
        return None


def generation_in_use(settings: Settings, name: str) -> GenerationRecord | None:
    """The generation in use, ``None`` without such a stream.

    Raises UsageError (``stream-ambiguous``), and for an unreadable ledger NotFound (``ledger-lost``), DataError or
    EnvironmentMissing.
    """
    try:
        with open_workspace(settings) as workspace:
            stream = find_stream(workspace.ledger, name)
            return workspace.ledger.generation(stream.full_name, stream.current_generation)
    except NotFound as error:
        if error.code == "ledger-lost":
            raise
        return None


def find_filed(home: Home, name: str) -> FiledStream | None:
    known = [(f"{pipeline}/{stream}", pipeline, stream) for pipeline, stream in streams_of(home)]
    named = [one for one in known if name in one[::2]]
    found: list[FiledStream] = []
    for full_name, pipeline, stream in named or known:
        file = read_stream_file(home, pipeline, stream)
        if file is None:
            continue
        # The checkpoint of this home, which may have been moved, comes before the recorded one.
        here = str(home.checkpoint(pipeline, stream, file.generation))
        recorded = next((one.location for one in file.generations if one.number == file.generation), here)
        place = here if open_read_store(here).exists("") else recorded
        if named or resolved(place) == resolved(name):
            found.append((full_name, file, place))
    return found[0] if len(found) == 1 else None


def stream_with(ledger: Ledger, name: str, location: str) -> StreamRecord | None:
    """The stream with this checkpoint, even moved; its query's ``name`` in the user's program does not matter. Raises
    Refused (``query-checkpoint``) if the checkpoint is a pipeline file's.
    """
    found = stream_at(ledger, location)
    if found is None:
        return stream_moved_to(ledger, location)
    if found.is_watched:
        return found
    raise Refused(
        "query-checkpoint",
        f"The checkpoint of query {name} belongs to a stream of a pipeline file",
        where=location,
        expected="a checkpoint that no other stream has",
        found=f"stream {found.full_name} of {found.pipeline_file}",
        hint="give the query a different checkpoint, or run the application with a home of its own: --home",
    )


_NAMES_MORE = (
    "home.json",
    "streams",
    "streams/*",
    "streams/*/*",
    "streams/*/*/stream.json",
    "streams/*/*/operations",
    "streams/*/*/operations/*",
    f"streams/*/*/operations/*/{PLAN_FILE}",
    f"streams/*/*/operations/*/{JOURNAL}",
)
"""Files in a home that name code or a place."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An opened home. ``in_home`` are pipeline and name of streams with a ``stream.json`` at opening. On a remote store
    each look-up is a request.
    """

    settings: Settings
    home: Home
    ledger: Ledger
    say: Say
    in_home: tuple[tuple[str, str], ...]

    def can_refresh(self, stream: str) -> bool:
        if self.ledger.read_only:
            self.say(
                f"{stream}: read access only; the ledger is not updated from the checkpoint, "
                "and batches that are not recorded yet are not included"
            )
        return not self.ledger.read_only

    def recorded_settings(self, stream: str) -> Mapping[str, str]:
        run = self.ledger.last_run(stream)
        return (run.settings if run is not None else None) or {}


def to_stderr(message: str) -> None:
    sys.stderr.write(f"{printable(message)}\n")
    sys.stderr.flush()


@contextmanager
def open_workspace(
    settings: Settings, *, create: bool = False, restore: bool = False, say: Say = to_stderr
) -> Iterator[Workspace]:
    """Open a home. Raises NotFound without a ledger unless ``create`` is given.

    ``create`` and ``restore`` change the home or run its code: raises SettingsError (``home-owner``) for a different
    owner. ``restore`` creates a lost ledger; ``check_home`` fills it. The default ``say`` writes to stderr.
    """
    home = Home(settings.home)
    address = settings.ledger or home.ledger_url
    if create or restore:
        folder, file = home.location.local, parse_url(address)
        if isinstance(file, Path):
            check_owner(file, folder or file.parent)
        if folder is not None:
            for path in (folder, *(path for named in _NAMES_MORE for path in folder.glob(named))):
                check_owner(path, folder)
    if create and not home.is_local and "://" not in address:
        say(
            f"the home is on a shared store and its ledger is the file {address}: only this machine may run its streams"
        )
    in_home = tuple(streams_of(home))
    found = [f"{pipeline}/{name}" for pipeline, name in in_home]
    with _open_ledger(address, found, create=create or (restore and bool(found)), say=say) as ledger:
        try:
            yield Workspace(settings, home, ledger, say, in_home)
        except DataError as error:
            if error.code == "ledger-unreadable":
                # A value that cannot be decoded is found far from where the ledger's address is known.
                error.where = error.where or ledger.place
            raise


def _open_ledger(address: str, streams: Sequence[str], *, create: bool, say: Say) -> Ledger:
    try:
        return Ledger.open(address, create=create, say=say)
    except NotFound as error:
        if error.code != "ledger-missing" or not streams:
            raise
        raise NotFound(
            "ledger-lost",
            "The ledger of this home is lost, but the home has the checkpoints of streams",
            where=error.where,
            found=", ".join(streams),
            hint=restore_command(streams[0]),
        ) from error


def restore_command(stream: str) -> str:
    return f"to restore it from stream.json and the checkpoints, run: {command('plan', 'resume', stream)}"
