"""Makes the plan for a goal; changes nothing but the ledger's copies."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.core.profile import QueryProfile
from slackwater.core.records import StreamRecord
from slackwater.ledger.lease.lease import JVM_WAIT_S, wait_until_free
from slackwater.ledger.located import find_stream
from slackwater.ledger.workspace import Workspace
from slackwater.operations.adopted import require_code
from slackwater.operations.apply.preconditions import check_restorable
from slackwater.operations.apply.replayer import QueryRuntime, Replayer
from slackwater.operations.backfill_directory import backfill_directory
from slackwater.operations.check_home import Consent, check_home
from slackwater.operations.downstream import derive_all
from slackwater.operations.goals.common.goal import goal_named
from slackwater.operations.plan.plan import Plan, Request
from slackwater.operations.plan.stream_facts import StreamFacts
from slackwater.operations.planner import Planning, QueryReader, refuse_without_session
from slackwater.storage.user_files import read_text


def make_plan(
    workspace: Workspace,
    name: str,
    request: Request,
    runtime: QueryRuntime,
    say: Callable[[str], None],
    *,
    consent: Consent = None,
) -> Plan:
    """Raises Refused if no exact and safe way exists, NotFound for an unknown stream."""
    check_home(workspace, consent, say)
    stream, goal = find_stream(workspace.ledger, name), goal_named(request.goal)
    # The JVM of a killed driver can still commit a batch, after which the plan would be outdated.
    wait_until_free(workspace.ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    request = replace(request, pipeline_named=bool(request.pipeline_file), session=request.session or stream.session)
    stream = stream._replace(session=request.session)
    made_at = datetime.now(UTC)
    identifier = f"{made_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    upgraded = request.pipeline_file or stream.pipeline_file

    def reader(one: StreamRecord, target: int | None) -> QueryReader:
        reference = upgraded if one.pipeline == stream.pipeline else one.pipeline_file
        return lambda: _read_present_query(workspace, one, reference, runtime, say, target=target)

    planning = Planning(workspace, runtime, reader, identifier, made_at.isoformat(timespec="seconds"))
    facts = planning.facts(stream, request.pipeline_file, request.goal)
    refuse_without_session(planning, facts, request)
    complete = goal.complete(request, _Lookups(workspace, facts, request, runtime, say))
    return derive_all(planning, facts, complete)


@dataclass(frozen=True, slots=True)
class _Lookups:
    workspace: Workspace
    facts: StreamFacts
    request: Request
    runtime: QueryRuntime
    say: Callable[[str], None]

    def require_code(self) -> None:
        require_code(self.facts.stream, self.request.goal, self.facts.stream.pipeline_file)

    def check_backfill_directory(self, request: Request) -> None:
        backfill_directory(self.workspace, self.facts.stream, request)

    @contextmanager
    def replayer(self) -> Iterator[Replayer]:
        self.runtime.require_spark()
        stream = self.facts.stream
        with self.runtime.open_replayer(self.workspace, stream, stream.pipeline_file, lambda _: None) as replayer:
            yield replayer

    def read_file(self, file: str) -> str:
        try:
            return read_text(Path(file))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                "target",
                f"The file of offsets cannot be read: {error}",
                where=file,
                hint="offsets:FILE names a JSON file",
            ) from error

    def now_ms(self) -> int:
        return round(time.time() * 1000)


def _read_present_query(
    workspace: Workspace,
    stream: StreamRecord,
    reference: str,
    runtime: QueryRuntime,
    say: Callable[[str], None],
    *,
    target: int | None,
) -> QueryProfile | None:
    """``None`` without Spark or Java. Raises Refused (``rebuild-insufficient``) if no rebuild corrects the output."""
    try:
        runtime.require_spark()
    except EnvironmentMissing as error:
        say(f"the changed query cannot be compared with the one that ran ({error.message}): all batches count")
        return None
    with runtime.open_replayer(workspace, stream, reference, lambda _: None) as replayer:
        say("the pipeline's code has changed since these batches ran: reading the query's plan")
        check_restorable(workspace.ledger, stream, target, replayer.program(), reference)
        return replayer.profile()
