"""Use case: plan for a goal. Reads, compares, and changes nothing but the ledger's copy of what it read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from slackwater.app.acting import Consent, acting
from slackwater.app.adopted import find_stream, require_code
from slackwater.app.backfill_range import with_range
from slackwater.app.deriving import Asked, QueryReader, side_of
from slackwater.app.downstream import derive_all
from slackwater.app.replayed_from import with_first_batch
from slackwater.app.run_pipeline import session_options
from slackwater.app.starts import starts_at
from slackwater.app.workspace import Workspace
from slackwater.errors import EnvironmentMissing
from slackwater.lease.lease import JVM_WAIT_S, wait_until_free
from slackwater.model.plan import Plan
from slackwater.model.profile import QueryProfile
from slackwater.model.records import StreamRecord
from slackwater.plan.backfill import check_ready
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.runtime.loader import LoadedPipeline, load
from slackwater.runtime.replay import SparkReplayer
from slackwater.runtime.session import require_spark


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How Spark is started to read a query, and what the user declares about a moved or copied home."""

    spark: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    consent: Consent = None


def plan_goal(workspace: Workspace, name: str, asked: Asked, options: PlanOptions, say: Callable[[str], None]) -> Plan:
    """The plan for one stream, and for later stages if asked for.

    Raises Refused where no exact and safe way exists, NotFound for an unknown stream.
    """
    acting(workspace, options.consent, say)
    stream = find_stream(workspace, name)
    wait_until_free(workspace.ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    made_at = datetime.now(UTC)
    identifier = f"{made_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"

    def reader(one: StreamRecord) -> QueryReader:
        upgraded = asked.pipeline_file or stream.pipeline_file
        reference = upgraded if one.pipeline == stream.pipeline else one.pipeline_file
        return lambda: _read_present_query(workspace, one, reference, options, say)

    if asked.goal in {"reset", "backfill"}:
        require_code(stream, asked.goal, asked.pipeline_file or stream.pipeline_file)
        asked = _with_positions(workspace, stream, asked, options, say)
    if asked.goal == "replay":
        asked = replace(asked, request=with_first_batch(workspace, stream, asked.request, say))
    identity = (identifier, made_at.isoformat(timespec="seconds"))
    return derive_all(workspace, stream, asked, reader, identity=identity)


def _with_positions(
    workspace: Workspace, stream: StreamRecord, asked: Asked, options: PlanOptions, say: Callable[[str], None]
) -> Asked:
    """With the positions of the sources, which only Spark can look up."""
    if asked.goal == "backfill":
        check_ready(read_snapshot(SnapshotContext(workspace.ledger, workspace.home), stream))
        side_of(workspace, stream, asked.request)
    require_spark()
    reference = asked.pipeline_file or stream.pipeline_file
    with _replayer(workspace, stream, load(reference), options, say) as replayer:
        if asked.goal == "backfill":
            return replace(asked, request=with_range(workspace, stream, asked.request, replayer))
        starts = starts_at(workspace, stream, asked.request, replayer)
    return replace(asked, request=replace(asked.request, starts=starts))


def _read_present_query(
    workspace: Workspace, stream: StreamRecord, reference: str, options: PlanOptions, say: Callable[[str], None]
) -> QueryProfile | None:
    """The plan of the query as the pipeline file defines it now; ``None`` where Spark or Java is missing."""
    try:
        require_spark()
    except EnvironmentMissing as error:
        say(f"the changed query cannot be compared with the one that ran ({error.message}): all batches count")
        return None
    loaded = load(reference)
    say("the pipeline file has changed since these batches ran: reading the query's plan")
    with _replayer(workspace, stream, loaded, options, say) as replayer:
        return replayer.profile()


def _replayer(
    workspace: Workspace, stream: StreamRecord, loaded: LoadedPipeline, options: PlanOptions, say: Callable[[str], None]
) -> SparkReplayer:
    session = session_options(loaded, workspace.settings, options.master, options.spark)
    return SparkReplayer(loaded, stream.name, session, home=workspace.home.path, say=say, on_jvm=lambda _: None)
