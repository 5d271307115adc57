"""A StreamingQueryListener of the user's own: it is called next to the one that records the batches in the ledger.

It writes each event in a line of ``out/listener.events``.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent

import slackwater as sw

pipeline = sw.Pipeline("managing")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
EVENTS = Path("out/listener.events")


class Events(StreamingQueryListener):
    """Notes which batches there were."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """A query has started."""
        note(f"started {event.name}")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is committed."""
        note(f"batch {event.progress.name} {event.progress.batchId} {event.progress.numInputRows}")

    def onQueryIdle(self, event: object) -> None:
        """There was nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """A query has ended."""
        note(f"ended {event.exception or 'well'}")


def note(text: str) -> None:
    """Append a line."""
    EVENTS.parent.mkdir(exist_ok=True)
    with EVENTS.open("a") as events:
        events.write(f"{text}\n")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/listener"))
def listener(spark: SparkSession) -> DataFrame:
    spark.streams.addListener(Events())
    return spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
