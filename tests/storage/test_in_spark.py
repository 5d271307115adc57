"""What Spark is given for a store: the URI, the connector, and the settings by which it reaches the same place."""

import pytest

from slackwater.storage.open import connectors_of, session_settings_of, spark_uri


def test_the_uri() -> None:
    assert spark_uri("s3://bucket/a b%20c") == "s3a://bucket/a b%20c"
    assert spark_uri("s3a://bucket/a") == "s3a://bucket/a"
    assert spark_uri("hdfs://host:9000/a") == "hdfs://host:9000/a"


def test_the_connector() -> None:
    assert connectors_of(["/home", "hdfs://host/a", "file:///a"]) == frozenset()
    assert connectors_of(["/home", "s3://bucket/a"]) == {"s3a"}


def test_endpoint_and_region_of_the_environment_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-shown")
    alone = session_settings_of("s3a")
    assert set(alone) == {f"spark.hadoop.fs.{scheme}.impl" for scheme in ("s3", "s3a", "s3n")}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert dict(session_settings_of("s3a").items() - alone.items()) == {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1",
    }
    assert session_settings_of("kafka") == {}
