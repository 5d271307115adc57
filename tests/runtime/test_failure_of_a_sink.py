"""A batch function of a sink fails: what the failure is called, from the messages that PySpark makes of it."""

from slackwater.runtime.run.failures import OUR_PACKAGE, classify

HEAD = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink.
py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/venv/site-packages/pyspark/sql/utils.py", line 145, in call
    raise e
"""
OURS = f"""  File "{OUR_PACKAGE}/sinks/delta/writer.py", line 40, in write
    self._merge(frame, batch)
"""
USERS = """  File "/srv/clicks.py", line 7, in double
    return 2 / n
"""


def test_an_error_of_the_sink_is_its_own_sentence() -> None:
    failure = classify(
        RuntimeError(
            f"{HEAD}{OURS}slackwater.sinks.common.batch_function.BatchFailed: [delta-keys] Two rows with one key\n"
        )
    )
    assert failure.reason == "delta-keys: Two rows with one key"
    assert (failure.kind, failure.code, failure.place) == ("permanent", "sink", None)


def test_an_error_of_spark_within_the_sink_is_not_the_users() -> None:
    failure = classify(RuntimeError(HEAD + OURS + "pyspark.errors.exceptions.captured.AnalysisException: no column\n"))
    assert failure.code == "query-refused"
    lost = classify(RuntimeError(HEAD + OURS + "java.net.ConnectException: Connection refused\n"))
    assert (lost.kind, lost.code) == ("transient", "store-unreachable")


def test_the_users_function_that_the_batch_calls_is_named() -> None:
    failure = classify(RuntimeError(HEAD + OURS + USERS + "ZeroDivisionError: division by zero\n"))
    assert (failure.code, failure.place) == ("user-function", "/srv/clicks.py:7")
