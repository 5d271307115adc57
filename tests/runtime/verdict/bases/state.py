"""The running sum and count of a user, by a function in Python."""

import pandas as pd

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


def running(key, frames, state):
    total, seen = state.get if state.exists else (0, 0)
    for frame in frames:
        total += int(frame["n"].sum())
        seen += len(frame)
    state.update((total, seen))
    yield pd.DataFrame({"user": [key[0]], "total": [total], "seen": [seen]})


def keep(frame, batch):
    frame.write.mode("overwrite").parquet(f"out/{batch}")


@pipeline.stream(sink=sw.sinks.foreach_batch(keep), output_mode="update")
def out(spark):
    return (
        clicks(spark)
        .groupBy("user")
        .applyInPandasWithState(
            running, "user string, total long, seen long", "total long, seen long", "update", "NoTimeout"
        )
    )
