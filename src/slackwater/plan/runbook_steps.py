"""The actions of a plan and their inverses as steps for somebody who does them by hand, one function for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from slackwater.diagnose.words import batch_range
from slackwater.model.actions import (
    Action,
    Base,
    BuildGeneration,
    CopyGeneration,
    CutBackfill,
    CutSink,
    DiscardAside,
    DiscardStaged,
    Inverse,
    PlanBatch,
    RemoveGeneration,
    ReplayBatches,
    ReplaySettings,
    RestoreSink,
    RunAside,
    RunBackfill,
    RunStaged,
    SkipBatch,
    StageOutput,
    StartGeneration,
    SwapBack,
    SwapOutput,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.plan import Plan
from slackwater.model.sink import Cut
from slackwater.plan.adopted import is_of_objects

NOOP_BATCH = """\
query = (
    frame.writeStream.format("noop")
    .option("checkpointLocation", NEW)
    .outputMode(OUTPUT_MODE)
    .trigger(once=True)
    .start()
)
query.awaitTermination()"""
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
SIDE_FILE = "- Delete the hidden side file `.NAME.crc` of each file that is written, renamed or changed by hand."


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its heading, and Markdown below it."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """Where checkpoints and recorded entries are: in directories whose variables the runbook sets.

    ``$CHECKPOINTS`` has a folder for each generation. Of a checkpoint that the user's code names, ``$CHECKPOINT`` is
    this path and ``$ASIDE`` the directory beside it.
    """

    plan: Plan

    def checkpoint(self, number: int) -> str:
        """The checkpoint directory of a generation."""
        if self.plan.facts.adopted is None:
            return f"$CHECKPOINTS/{number:04d}"
        built = any(isinstance(one, Base) and one.number == number for one in self.plan.actions)
        return "$ASIDE" if built else "$CHECKPOINT"

    def entry(self, log: str, batch: int | str) -> str:
        """Where the recorded entry of a batch is copied from."""
        number = next((one.expected for one in self.plan.preconditions if one.name == "generation"), None)
        if number is None or not self.plan.facts.checkpoint_present:
            return f"`{log}/{batch}` of the ledger"
        return f"`{self.checkpoint(int(number))}/{log}/{batch}`"


def step_of(action: Action, places: Places) -> Step:
    """One action as a step."""
    match action:
        case BuildGeneration() | CopyGeneration() | StartGeneration():
            step = _new_checkpoint(action, places)
        case ReplayBatches():
            step = _replay(action, places)
        case PlanBatch() | SkipBatch() | RunBackfill() | RunAside():
            step = _one_batch(action, places)
        case VerifyGeneration():
            step = _verify(action, places)
        case CutSink():
            step = _cut(action)
        case StageOutput():
            step = _stage(action)
        case RunStaged():
            step = _run_staged(action, places)
        case SwapOutput():
            step = _swap()
        case SwitchGeneration():
            step = _switch(action, places)
        case _:
            assert_never(action)
    return step


def step_back(inverse: Inverse, places: Places) -> Step:
    """The inverse of an action as a step."""
    match inverse:
        case SwitchGeneration():
            step = _switch(inverse, places)
        case RemoveGeneration():
            step = _remove(inverse, places)
        case RestoreSink():
            step = _restore(inverse)
        case DiscardStaged():
            step = Step("Remove the output that was built aside", ("- Delete it; the real output is another place.",))
        case SwapBack():
            step = Step("Put the old output back", ("- Give the old output its place again; keep the new one aside.",))
        case CutBackfill():
            line = (
                f"- Remove from the output what batch {inverse.after + 1} wrote, and nothing else, if it has the batch."
            )
            step = Step(f"Cut the output back to batch {inverse.after}", (line,))
        case DiscardAside():
            step = Step(
                "Empty the side output",
                (f"- Delete what the batch wrote to `{inverse.output.path}`. The stream does not depend on it.",),
            )
        case _:
            assert_never(inverse)
    return step


def _new_checkpoint(action: Base, places: Places) -> Step:
    match action:
        case BuildGeneration():
            lines = _build(action, places)
        case CopyGeneration():
            lines = _copy(action, places)
        case StartGeneration():
            lines = _start(action, places)
        case _:
            assert_never(action)
    return Step(f"Build the checkpoint of generation {action.number} aside", (*lines, SIDE_FILE))


def _build(action: BuildGeneration, places: Places) -> list[str]:
    return [*_folder(action, places), *_sources(action, places), *_base(action, places)]


def _copy(action: CopyGeneration, places: Places) -> list[str]:
    lines = [*_folder(action, places), *_sources(action, places)]
    if action.last >= 0:
        lines.append(
            f"- Copy {places.entry('offsets', 'N')} and {places.entry('commits', 'N')} up to batch {action.last}."
        )
    if action.state is not None:
        old, version = places.checkpoint(action.source), action.state + 1
        lines += [
            f"- Copy `{old}/state`, but no version above {version}, the state after batch {action.state}: the numbers",
            "  of `N.delta`, `N.changelog`, `N.snapshot` and `N.zip` are versions.",
        ]
    return lines


def _start(action: StartGeneration, places: Places) -> list[str]:
    lines = [*_folder(action, places)]
    for start in action.starts:
        lines.append(f"- Source {start.source} starts at `{start.offset}` ({start.summary}).")
        lines += [f"- Write `sources/{start.source}/{name}`, as the plan has it." for name in action.log_of(start)]
    if action.last >= 0:
        first = action.last + 1
        lines += [
            f"- Write `offsets/0` with these offsets as the ends, run the query once with `{CHANGELOG}=false` and the",
            "  no-op sink, and check that it read no rows.",
            *_renamed(action.last, first),
            f"- Rename `offsets/0` to `offsets/{action.last}`, and copy it to `offsets/{max(action.last - 1, 0)}`.",
        ]
    return lines


def _folder(action: Base, places: Places) -> Iterator[str]:
    new = places.checkpoint(action.number)
    yield f"- Create the folder `{new}`. It must not exist yet. The names below are files in it."
    yield f'- Write `metadata` with the one line `{{"id":"{action.query_id}"}}`: the query keeps its id.'


def _sources(action: BuildGeneration | CopyGeneration, places: Places) -> list[str]:
    newest = action.last if action.pending is None else action.pending
    if newest < 0:
        return []
    return [
        f"- File source I: copy the entries {places.entry('sources/I', 'N')} up to the `logOffset` of batch",
        f"  {newest} (in {places.entry('offsets', newest)}). Split a `.compact` file that has later entries by",
        "  `batchId`: the query has to find those files again. Other sources: copy `sources/` as it is.",
    ]


def _base(action: BuildGeneration, places: Places) -> Iterator[str]:
    if action.first > action.last:
        for batch in range(max(action.last - 1, 0), action.last + 1):
            yield f"- Copy {places.entry('offsets', batch)} and {places.entry('commits', batch)}."
        return
    if action.first == 0:
        yield "- The replay starts with batch 0, so that no base is needed."
        return
    before, first = action.first - 1, action.first
    entry = places.entry("offsets", before)
    yield f"- Build an empty base: copy {entry} to `offsets/0`, and make its range empty. File source: replace"
    yield '  the end by `{"logOffset":-1}`. Kafka source I: write `sources/I/0`, a zero byte, `v1`,'
    yield "  a line break, and the end."
    yield f"- Run the query once, as in the next step, with `{CHANGELOG}=false`;"
    yield "  `query.lastProgress.numInputRows` must be 0."
    yield from _renamed(before, first)
    yield f"- Delete `offsets/0`, and copy {entry} to `offsets/{before}`."


def _renamed(before: int, first: int) -> Iterator[str]:
    yield "- In each `state/OPERATOR/PARTITION/`, and in the folders of stores in it, rename `1.delta` to"
    yield f"  `{first}.snapshot`, `1.zip` to `{first}.zip`, or `1_UUID.zip` to `{first}_UUID.zip`."
    yield f"- Rename `commits/0` to `commits/{before}`."


def _replay(action: ReplayBatches, places: Places) -> Step:
    batches, last = batch_range(action.first, action.last), action.last
    lines = [
        "`slackwater apply` does this. It runs each of these batches once, in this order, as the code below does:",
        "with its recorded range and its own id, without output.",
        "",
        "| batches | SQL settings to set before |",
        "|---|---|",
        *(_settings_row(group) for group in action.settings),
        "",
        "```python",
        f'NEW = os.path.expandvars("{places.checkpoint(action.number)}")',
        f"for batch in range({action.first}, {last + 1}):",
        '    copy_recorded("offsets", batch, NEW)',
        *(f"    {line}" for line in NOOP_BATCH.splitlines()),
        '    assert query.lastProgress["batchId"] == batch',
        "```",
        "",
        "- `frame` is what the function of the stream returns, in a session with the settings of the batch;",
        "  `OUTPUT_MODE` is that of the stream.",
        f"- `copy_recorded` copies {places.entry('offsets', 'N')} unchanged.",
        "- Never start the query before the entry is copied: it would plan a new batch and discard its rows.",
        "- `query.lastProgress.numInputRows` of each batch must be the number of rows that is recorded of it.",
        f"- Afterwards set `nextBatchWatermarkMs` in `commits/{last}` to that of {places.entry('commits', last)}.",
        SIDE_FILE,
    ]
    return Step(f"Replay {batches} into generation {action.number}, without output", tuple(lines))


def _settings_row(group: ReplaySettings) -> str:
    if group.settings is None:
        shown = "not recorded: those of the session"
    else:
        shown = ", ".join(f"`{name}={value}`" for name, value in sorted(group.settings.items())) or "none"
    return f"| {batch_range(group.first, group.last)} | {shown.replace('|', '&#124;')} |"


def _one_batch(action: PlanBatch | SkipBatch | RunBackfill | RunAside, places: Places) -> Step:
    match action:
        case PlanBatch():
            return _plan_batch(action, places)
        case SkipBatch():
            return _skip_batch(action, places)
        case RunBackfill():
            return _run_backfill(action, places)
        case RunAside():
            return _run_aside(action, places)


def _plan_batch(action: PlanBatch, places: Places) -> Step:
    batch, before = action.batch, action.batch - 1
    lines = (
        f"- Copy {places.entry('offsets', batch)} to `{places.checkpoint(action.number)}/offsets/{batch}`, unchanged.",
        "- If no entry of the batch is recorded, it has no rows and only advances the watermark: copy",
        f"  `offsets/{before}` and set its `batchWatermarkMs` to the `nextBatchWatermarkMs` of `commits/{before}`.",
        f"- Do not write `commits/{batch}`: the query then runs batch {batch} first, with this range.",
    )
    return Step(f"Plan batch {batch}", lines)


def _skip_batch(action: SkipBatch, places: Places) -> Step:
    batch, before, new = action.batch, action.batch - 1, places.checkpoint(action.number)
    lines = (
        f"- Copy `{new}/offsets/{before}` to `{new}/offsets/{batch}`, unchanged.",
        f"- Copy `{new}/commits/{before}` to `{new}/commits/{batch}`, unchanged.",
    )
    return Step(f"Skip batch {batch} in generation {action.number}", lines)


def _run_backfill(action: RunBackfill, places: Places) -> Step:
    new, before = places.checkpoint(action.number), action.batch - 1
    ends = ", ".join(f"`{end}` for source {source}" for source, end in action.ends.items())
    lines = (
        f"- Copy `{new}/offsets/{before}` to `{new}/offsets/{action.batch}`, and replace its last lines, the offsets,",
        f"  by {ends}.",
        f"- Run the query of the stream with `checkpointLocation` `{new}` into its output, under the id of the stream,",
        "  with `trigger(once=True)`. It runs this batch and no other.",
        f"- Afterwards `{new}/commits/{action.batch}` is there. Start no query on this checkpoint again.",
    )
    return Step(f"Run batch {action.batch} into the output", lines)


def _run_aside(action: RunAside, places: Places) -> Step:
    new, last = places.checkpoint(action.number), places.plan.facts.committed
    ends = ", ".join(f"`{end}` for source {source}" for source, end in action.ends.items())
    lines = (
        f"- Copy {places.entry('offsets', last)} to `{new}/offsets/0`, and replace its last lines, the offsets, by",
        f"  {ends}.",
        f"- Run the query of the stream with `checkpointLocation` `{new}` and `trigger(once=True)` into",
        f"  `{action.output.path}`, as {action.output.format} files. The directory must be empty. It runs this batch",
        "  and no other.",
        f"- Afterwards `{new}/commits/0` is there. Start no query on this checkpoint again.",
    )
    return Step("Run the batch into the side output", lines)


def _verify(action: VerifyGeneration, places: Places) -> Step:
    planned = action.last if action.pending is None else action.pending
    lines = [
        "```sh",
        f'slackwater inspect "{places.checkpoint(action.number)}"',
        "```",
        "",
        f"- The newest batch in `offsets/` is {planned}, the newest in `commits/` is {action.last}.",
    ]
    if action.state is not None:
        lines.append(
            f"- The newest state that can be loaded is that after batch {action.state}, if the query has state."
        )
    if action.first <= action.last:
        lines.append(
            f"- The ranges and watermarks of {batch_range(action.first, action.last)} are those of "
            f"{places.entry('offsets', 'N')}."
        )
    return Step(f"Verify generation {action.number}", tuple(lines))


def _cut(action: CutSink) -> Step:
    cut = action.cut
    lines = [
        f"- Remove from the output what {_batches(cut)} added, and nothing else. Copy it to a backup first:",
        *_cut_of(cut),
        f"- Afterwards the newest batch that the output shows is {cut.after}.",
    ]
    return Step(f"Cut the output back to batch {cut.after}", tuple(lines))


def _cut_of(cut: Cut) -> Iterator[str]:
    for index, member in enumerate(cut.members, start=1):
        yield f"- Output {index}: {_batches(member) if member.batches else 'nothing'}"
        yield from (f"  {line}" for line in _cut_of(member))
    if cut.rows is not None:
        yield f"- {cut.rows:,} rows"
    if cut.version is not None:
        yield f"- The cut was worked out from version `{cut.version}` of the output."
    if cut.files:
        yield f"- {len(cut.files):,} files, {cut.bytes:,} bytes, with their entries in the output's own manifest:"
        yield from (f"  - `{name}`" for name in cut.files)


def _stage(action: StageOutput) -> Step:
    holds = f"a copy of what batches 0..{action.after} wrote" if action.after >= 0 else "no row"
    return Step("Prepare an output aside", (f"- Create another output beside the real one. It holds {holds}.",))


def _run_staged(action: RunStaged, places: Places) -> Step:
    checkpoint = places.checkpoint(action.number)
    line = f"- Run the query with `checkpointLocation` `{checkpoint}` into the output aside, until it has caught up."
    return Step("Fill the output aside", (line,))


def _swap() -> Step:
    line = "- Rename the real output, then give the one aside its place. Nobody may read or write either meanwhile."
    return Step("Put the new output in the place of the old one", (line, "- Keep the old one until it is verified."))


def _switch(action: SwitchGeneration, places: Places) -> Step:
    adopted = places.plan.facts.adopted
    if adopted is not None:
        return _replace_files(action) if is_of_objects(adopted) else _exchange(action)
    lines = (
        "- If Slackwater runs the stream, do not switch by hand: only `slackwater apply` and `slackwater undo` record",
        f"  in the ledger and in `stream.json` that generation {action.new} is in use.",
        f"- If you run the query yourself, start it with `checkpointLocation` `{places.checkpoint(action.new)}`.",
        f"- Keep `{places.checkpoint(action.old)}` until the result is verified, and start no query on it.",
    )
    return Step(f"Switch from generation {action.old} to {action.new}", lines)


def _exchange(action: SwitchGeneration) -> Step:
    lines = (
        "- Only `slackwater apply` and `slackwater undo` record in the ledger which generation is at the path, and",
        "  they exchange the two directories in one step where the file system can. By hand, in this order:",
        "",
        "```sh",
        'mv -T "$CHECKPOINT" "$ASIDE.held"',
        'mv -T "$ASIDE" "$CHECKPOINT"',
        'mv -T "$ASIDE.held" "$ASIDE"',
        "```",
        "",
        "- If the machine fails in between: where `$CHECKPOINT` does not exist, continue with the second command;",
        "  else, where `$ASIDE.held` exists, with the third.",
    )
    return Step(f"Exchange the checkpoints: generation {action.new} for {action.old}", lines)


def _replace_files(action: SwitchGeneration) -> Step:
    lines = (
        "- Only `slackwater apply` and `slackwater undo` record in the ledger which generation is at the path.",
        "- Copy all files below `$CHECKPOINT` to a folder that stays.",
        "- Replace `$CHECKPOINT/metadata` by a line that is no JSON: no query can start on it then.",
        "- Delete the files below `$CHECKPOINT` that `$ASIDE` does not have, and copy those of `$ASIDE` there, without",
        "  the checksums `.*.crc`, and `metadata` last.",
        "- Operator metadata below `state/` names schema files by absolute paths: they begin with `$CHECKPOINT` then.",
    )
    return Step(f"Replace the checkpoint: generation {action.new} for {action.old}", lines)


def _remove(action: RemoveGeneration, places: Places) -> Step:
    line = f"- Delete the folder `{places.checkpoint(action.number)}`, which the steps above created."
    return Step(f"Remove generation {action.number}", (line,))


def _restore(action: RestoreSink) -> Step:
    line = f"- Put what was cut ({_batches(action.cut)}) back from the backup, with its entries in the manifest."
    return Step("Restore the output", (line,))


def _batches(cut: Cut) -> str:
    return batch_range(cut.batches[0], cut.batches[-1])
