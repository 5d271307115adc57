"""Secrets that a process has read are replaced by value, in whatever form a text repeats them."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from slackwater.core.masking import KnownSecrets

VALUE = "hun\"ter 2/+'Zq9$é"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password={};'
LEFT = ("hun", "ter 2", "Zq9")

FORMS = {
    "map of Scala": f"Map(password -> {VALUE}, user -> ann)",
    "tuple of Scala": f"(spark.hadoop.fs.s3a.secret.key,{VALUE})",
    "repr of a dict": repr({"headers": {"X-Key": VALUE}}),
    "JSON": json.dumps({"a": VALUE}),
    "JSON with letters": json.dumps({"a": VALUE}, ensure_ascii=False),
    "JAAS in JSON": json.dumps(JAAS.format(json.dumps(VALUE))),
    "JAAS in repr": repr(JAAS.format(json.dumps(VALUE))),
    "call of Python": f".option('password', {VALUE!r})",
    "SQL": f"CREATE USER ann PASSWORD '{VALUE.replace(chr(39), chr(39) * 2)}'",
    "Oracle": f"jdbc:oracle:thin:ann/{VALUE}@db:1521/x",
    "URL with a space": f"postgresql://ann:{VALUE}@db/x",
    "URL": f"postgresql://ann:{quote(VALUE, safe='')}@db/x",
    "query of a URL": f"https://x/y?Signature={quote_plus(VALUE)}",
    "lower case": f"https://x/y?a={re.sub('%..', lambda code: code[0].lower(), quote(VALUE, safe=''))}",
    "Base64": f"Basic {base64.b64encode(f'ann:{VALUE}'.encode()).decode()}",
    "yaml": f"NAME: {VALUE}",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_replaced(form: str) -> None:
    known = KnownSecrets()
    known.remember("url", f"postgresql://ann:{quote(VALUE, safe='')}@db/x")
    shown = known.replaced(f"before {FORMS[form]} after", "***")
    assert "***" in shown
    assert not [part for part in LEFT if part in shown]
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "S3cr3tValue"),
        ("kafka.sasl.jaas.config", JAAS.format('"S3cr3tValue"')),
        ("url", "jdbc:postgresql://db/x?user=ann&password=S3cr3tValue"),
        ("url", "jdbc:oracle:thin:ann/S3cr3tValue@db:1521/x"),
        ("ledger", "postgresql://ann:S3cr3tValue@db/x"),
        ("", "spark.ssl.keyPassword=S3cr3tValue"),
        ("header", '{"api-key": "S3cr3tValue"}'),
    ],
)
def test_a_secret_is_taken_from(name: str, value: str) -> None:
    known = KnownSecrets()
    known.remember(name, value)
    assert known.replaced("it was (S3cr3tValue)", "***") == "it was (***)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"),
        ("failOnUnknownToken", "true"),
        ("max.token.count", "10000"),
        ("password", "env:PGPASSWORD"),
        ("GOOGLE_APPLICATION_CREDENTIALS", __file__),
        ("path", "/lake/out"),
        ("password", "secret"),
        ("spark.token", "credentials"),
    ],
)
def test_no_secret_is_taken_from(name: str, value: str) -> None:
    known = KnownSecrets()
    known.remember(name, value)
    assert known.replaced(f"it was ({value})", "***") == f"it was ({value})"


def test_a_short_secret_is_replaced_as_a_whole_word_only() -> None:
    known = KnownSecrets()
    known.remember("password", "kafka")
    assert known.replaced("user/kafka@db from kafkaesque", "***") == "user/***@db from kafkaesque"


@pytest.mark.parametrize("text", ["bytes \udcff and S3cr3tValue", "a high \ud800 and S3cr3tValue \udcfe"])
def test_a_text_with_surrogates_is_searched(text: str) -> None:
    known = KnownSecrets()
    known.remember("password", "S3cr3tValue")
    assert known.replaced(text, "***") == text.replace("S3cr3tValue", "***")


def test_an_environment_that_is_not_utf_8_stops_no_command(tmp_path: Path) -> None:
    variables = {**os.environb, b"FOO_TOKEN": b"\xff\xfeabcdefgh", b"URL": b"postgresql://\xff:\xfesecret99@db/x"}
    command: list[str | bytes] = [sys.executable, "-m", "slackwater", "inspect", b"missing-\xff\xfeabcdefgh"]
    ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, check=False)
    assert b"Traceback" not in ended.stderr
    assert b"abcdefgh" not in ended.stderr


@pytest.mark.parametrize("unit", ["a://b:", "jdbc:oracle:x:", 'password="', "a://b:c@", "token:'", "x.y-"])
def test_the_time_to_remember_grows_with_the_value_only(unit: str) -> None:
    def taken(count: int) -> float:
        times = []
        for _ in range(5):
            start = time.process_time()
            KnownSecrets().remember("option", unit * count)
            times.append(time.process_time() - start)
        return min(times)

    assert taken(64_000 // len(unit)) < 8 * taken(16_000 // len(unit)) + 0.05


def test_the_time_grows_with_the_text_only() -> None:
    known = KnownSecrets()
    for number in range(500):
        known.remember("password", f"aaaa{number}aaaa" * 3)

    def taken(text: str) -> float:
        known.replaced(text, "***")
        return min(_timed(known, text) for _ in range(5))

    assert taken("a" * 400_000) < 8 * taken("a" * 100_000) + 0.05


def _timed(known: KnownSecrets, text: str) -> float:
    start = time.process_time()
    known.replaced(text, "***")
    return time.process_time() - start


def test_a_value_of_the_environment_or_of_a_setting_is_not_shown(tmp_path: Path) -> None:
    """As a user meets it: a message repeats a password without any name beside it."""
    (tmp_path / "slackwater.toml").write_text('[spark]\n"spark.hadoop.fs.s3a.secret.key" = "FromTheFile9"\n')
    for secret in ("FromTheEnvironment9", "FromTheFile9"):
        command = [sys.executable, "-m", "slackwater", "inspect", f"missing-{secret}"]
        ended = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "DB_PASSWORD": "FromTheEnvironment9"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode
        assert secret not in ended.stdout + ended.stderr
        assert "***" in ended.stderr
