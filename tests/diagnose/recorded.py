"""What a ledger adds to the facts of a checkpoint, for checks that need it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from slackwater.core.facts import Facts, HistoryFacts, Unserved
from slackwater.core.records import BatchRecord, BatchSource, RunRecord
from slackwater.core.verdict import StreamVerdict


def batch(number: int, *rows: int, moved: bool = True, watermark_ms: int | None = None) -> BatchRecord:
    sources = tuple(
        BatchSource(f"source {index}", str(number), str(number + 1 if moved else number), None, count)
        for index, count in enumerate(rows)
    )
    return BatchRecord("s", 1, number, number, sum(rows), sources, watermark_ms)


def with_history(*batches: BatchRecord) -> Callable[[Facts], Facts]:
    """A change of the facts: these batches are recorded, as those of a stream."""

    def change(facts: Facts) -> Facts:
        return facts._replace(history=HistoryFacts(batches=batches), recorded=True)

    return change


def skipping(change: Callable[[Facts], Facts]) -> Callable[[Facts], Facts]:
    """A change of the facts together with an output that skips the batches that it has."""

    def changed(facts: Facts) -> Facts:
        found = change(facts)
        output = found.snapshot.output._replace(batches_skipped=True)
        return found._replace(snapshot=found.snapshot._replace(output=output))

    return changed


def with_settings(**settings: str) -> Callable[[Facts], Facts]:
    """A change of the facts: the last run had these settings of Spark's; underscores in names are dots."""

    def change(facts: Facts) -> Facts:
        named = {f"spark.sql.{name.replace('_', '.')}": value for name, value in settings.items()}
        run = RunRecord(1, "s", 1, "4.3.0", 0, settings=named)
        return facts._replace(history=HistoryFacts(runs=(run,)), recorded=True)

    return change


def with_session(settings: Mapping[str, str]) -> Callable[[Facts], Facts]:
    """A change of the facts: code was compared with the checkpoint, in a session with these settings."""
    verdict = StreamVerdict("web/out", 7, "checkpoint")
    return lambda facts: facts._replace(code=replace(verdict, session=settings))


def with_runs(*releases: str) -> Callable[[Facts], Facts]:
    """A change of the facts: runs of this checkpoint by these releases of Spark, the newest first."""
    runs = tuple(RunRecord(number, "s", 1, release, 0) for number, release in enumerate(releases))
    return lambda facts: facts._replace(history=HistoryFacts(runs), recorded=True)


def renaming_by_copies(change: Callable[[Facts], Facts]) -> Callable[[Facts], Facts]:
    """A change of the facts together with a store that has no atomic rename."""

    def changed(facts: Facts) -> Facts:
        found = change(facts)
        return found._replace(checkpoint=replace(found.checkpoint, atomic_rename=False))

    return changed


def with_query_id(query_id: str) -> Callable[[Facts], Facts]:
    """A change of the facts: the ledger has recorded this query id for the checkpoint."""

    def change(facts: Facts) -> Facts:
        snapshot = facts.snapshot
        return facts._replace(snapshot=snapshot._replace(generation=snapshot.generation._replace(query_id=query_id)))

    return change


def with_unserved(problem: str, partitions: int) -> Callable[[Facts], Facts]:
    """A change of the facts: each source has this problem with so many partitions of a topic, with 5 records each."""

    def change(facts: Facts) -> Facts:
        found = tuple(Unserved(problem, f"orders-{number + 1}", "10", "15", 5) for number in range(partitions))
        return facts._replace(sources=tuple(one._replace(unserved=found) for one in facts.sources), recorded=True)

    return change
