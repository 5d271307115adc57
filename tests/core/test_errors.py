"""Errors as users of the library catch them."""

import pytest

import slackwater as sw


def test_an_error_of_the_library_answers_as_errors_of_pyspark_do() -> None:
    with pytest.raises(sw.SlackwaterError) as caught:
        sw.sinks.files("xml", "out/")

    assert caught.value.getCondition() == "sink-format"
    assert caught.value.getMessageParameters() == {
        "expected": "parquet, orc, json, csv, text, avro",
        "found": "'xml'",
        "hint": 'for example sinks.files("parquet", "out/")',
    }
