"""Runs the recorded batches again in the new checkpoint, under their own ids, ranges, watermarks and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slackwater.apply.actions.facts import CODE, NOTHING, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.apply.replayer import Replayed
from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.writer import write_log
from slackwater.errors import Refused
from slackwater.formats.commit_log import parse_commit_entry, render_commit_entry
from slackwater.model.actions import BuildGeneration, ReplayBatches
from slackwater.plan.contributing import Code
from slackwater.plan.words import plan_again
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: ReplayBatches) -> ActionFacts:
    """Run the batches that are not committed yet. Raises Refused where Spark reads other rows than were read before.

    A replay that was killed is continued with the batch that was in progress: running it again is exact.
    """
    folder, replayer = operation.checkpoint(action.number), operation.open_replayer()
    code = replayer.code()
    _check_same_code(operation, code.digest)
    store, batches = LocalStore(folder), operation.batches
    done = read_logs(store).committed
    for batch in range(max(action.first, done + 1), action.last + 1):
        entry = batches.history.offsets[batch].encode("utf-8", "surrogateescape")
        if not store.exists(offset_path(batch)) or store.read(offset_path(batch)) != entry:
            write_log(store, offset_path(batch), entry)
        replayed = replayer.run_pending(str(folder), changelog=True, settings=_settings(action, batch))
        _check_replayed(operation, batch, replayed, code)
        operation.progress.batch(batch)
    _restore_next_watermark(operation, store, action.last)
    return NOTHING


def _settings(action: ReplayBatches, batch: int) -> Mapping[str, str] | None:
    return next((group.settings for group in action.settings if group.first <= batch <= group.last), None)


def _check_same_code(operation: Operation, digest: str) -> None:
    """A replay that was killed can only be continued with the code that it was started with."""
    built = next(index for index, one in enumerate(operation.plan.actions) if isinstance(one, BuildGeneration))
    started_with = operation.journal.facts(built).get(CODE)
    if started_with is not None and started_with != digest:
        raise Refused(
            "pipeline-edited",
            "The pipeline file was edited while the operation was unfinished; state of two versions would be mixed",
            where=operation.plan.pipeline_file,
            expected=str(started_with)[:12],
            found=digest[:12],
            hint=f"what was built aside is removed; plan again: {plan_again(operation.plan)}",
        )


def _check_replayed(operation: Operation, batch: int, replayed: Replayed, code: Code) -> None:
    if replayed.batch_id != batch:
        raise Refused(
            "replay-strayed",
            "Spark ran another batch than the recorded one",
            where=f"stream {operation.plan.stream}",
            expected=str(batch),
            found=str(replayed.batch_id),
            hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
        )
    run = operation.history.runs.get(batch)
    # Spark counts rows behind the filters that it pushes into a source: other code may read more or fewer of a range.
    comparable = run is None or code.reads_as(run)
    expected = operation.batches.rows(batch) if comparable else None
    if expected is not None and expected != replayed.input_rows:
        raise Refused(
            "rows-differ",
            f"Batch {batch} does not read the rows that it read before",
            where=f"stream {operation.plan.stream}",
            expected=f"{expected} rows",
            found=f"{replayed.input_rows} rows",
            hint="restore the source's data; nothing in use was changed",
        )


def _restore_next_watermark(operation: Operation, store: LocalStore, last: int) -> None:
    """Spark loses per-operator maxima at each start, so the watermark after the last batch is the recorded one."""
    recorded = operation.batches.commit(last)
    if recorded is None:
        return
    commit = parse_commit_entry(store.read(commit_path(last)))
    if commit.next_batch_watermark_ms != recorded.next_batch_watermark_ms:
        corrected = replace(commit, next_batch_watermark_ms=recorded.next_batch_watermark_ms)
        write_log(store, commit_path(last), render_commit_entry(corrected))
