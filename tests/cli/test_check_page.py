"""What ``check`` shows of streams, without Spark."""

from dataclasses import replace

from slackwater.cli.common.comparison import CheckedPipeline, CheckedStream
from slackwater.cli.verbs.check import check_document, check_page
from slackwater.core.verdict import Change, Effect, StreamVerdict, Verdict

UNREADABLE = CheckedStream("clicks/per_page", StreamVerdict("clicks/per_page", 6, "unreadable"))
NEW = CheckedStream("clicks/views", StreamVerdict("clicks/views", -1, "nothing"))


def test_a_stream_that_cannot_be_read_is_not_called_the_same() -> None:
    checked = CheckedPipeline("clicks.py", (UNREADABLE,))

    assert [str(line) for line in check_page(checked).renderables] == [
        "clicks/per_page  not compared: its plan or code cannot be read"
    ]
    document = check_document(checked)
    (stream,) = document["streams"]
    assert (document["effect"], stream["effect"], stream["compared_with"]) == (None, None, "unreadable")
    assert (stream["batch"], stream["starts"], checked.starts) == (6, True, True)


def test_the_effect_of_all_is_that_of_the_streams_that_were_compared() -> None:
    checked = CheckedPipeline("clicks.py", (UNREADABLE, NEW))

    assert check_document(checked)["effect"] == "same"
    assert "nothing: the checkpoint holds no batch" in str(check_page(checked).renderables[-1])


def test_what_cannot_be_compared_is_a_note_and_no_change() -> None:
    note = Change("function-not-repeatable", Effect.SAME, "function clean depends on chance", said=True)
    stream = replace(NEW, verdict=StreamVerdict("clicks/views", -1, "nothing", Verdict((note,))))

    page = [str(line) for line in check_page(CheckedPipeline("clicks.py", (stream,))).renderables]

    assert page[-1] == "  note      function-not-repeatable (same): function clean depends on chance"


def test_what_no_run_has_recorded_is_not_called_the_same_without_a_word() -> None:
    adopted = CheckedStream("watched/clicks", StreamVerdict("watched/clicks", 6, "checkpoint"))
    checked = CheckedPipeline("clicks.py", (adopted,))

    assert "same as far as the checkpoint shows" in str(check_page(checked).renderables[0])
    assert not checked.is_compared
    assert not CheckedPipeline("clicks.py", (UNREADABLE,)).is_compared
    assert CheckedPipeline("clicks.py", (NEW,)).is_compared
