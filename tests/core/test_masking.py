"""What is replaced before text is shown or stored, and what must stay readable."""

import base64
import json
import os
import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.escaping import one_line, printable, printable_bytes, quoted
from slackwater.core.masking import KNOWN_SECRETS, MASK, KnownSecrets, mask, mask_setting

HIDDEN = "hunter2/+Zq9"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:{}@db/ledger",
        "postgresql://ann:{}@me@db:5432/ledger",
        "redis://:{}@cache:6379/0",
        "postgresql+psycopg://ann@/ledger?host=/run&password={}",
        "postgresql://ann@db/ledger?sslpassword={}&application_name=x",
        "jdbc:postgresql://db/x?user=ann&password={}",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BUID%3Dann%3BPWD%3D{}%3BX%3D1",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3D%7B{}%3B{}%7D",
        "DRIVER=x;UID=ann;PWD={{{}; {}}};X=1",
        "jdbc:sqlserver://db:1433;user=ann;password={};encrypt=true",
        "spark.hadoop.fs.s3a.secret.key={}",
        "--conf spark.hadoop.fs.s3a.secret.key={} --name x",
        "(spark.hadoop.fs.s3a.access.key,x) and spark.hadoop.fs.s3a.session.token={}",
        "fs.azure.account.key.lake.dfs.core.windows.net={}",
        "spark.ssl.keyPassword = {}",
        'sasl.jaas.config=PlainLoginModule required username="ann" password="{} two words";',
        "{{'user': 'ann', 'password': '{}'}}",
        '{{"client_secret": "{}", "id": 3}}',
        '{{"api_key":"{}"}}',
        "connection failed: password: {}",
        "https://lake.blob.core.windows.net/c?sv=2024&sig={}&se=2027",
        "https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={}&X-Amz-Security-Token={}",
        "Authorization: Bearer {}",
        "401 for bearer {}",
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "MY_PASSWORD={}",
        "Caused by: x.Y: password=>{}",
    ],
)
def test_a_secret_is_replaced(text: str) -> None:
    shown = mask(text.replace("{}", HIDDEN).replace("{{", "{").replace("}}", "}"))
    assert "hunter2" not in shown
    assert "Zq9" not in shown
    assert MASK in shown
    assert "two words" not in shown


@pytest.mark.parametrize("text", ["AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN"])
def test_keys_and_tokens_with_a_known_form_are_replaced(text: str) -> None:
    assert mask(f"the request with {text} was denied") == f"the request with {MASK} was denied"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann@db:5432/ledger",
        'FATAL: password authentication failed for user "ann"',
        "Unrecognized token 'abc': was expecting JSON",
        "/lake/table/token=17/secret=no/part-0.parquet",
        "file:///out/part-1.parquet",
        "s3a://bucket/out: AccessDenied",
        "kafka:9092, topic=clicks, group=secretaries",
        "http://localhost:9000/bucket is unreachable",
        "spark.sql.shuffle.partitions=4",
        "state store key=17 was not found",
        'give the sink password="env:NAME", or password=env:PGPASSWORD',
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert mask(text) == text


def test_masking_twice_changes_nothing_more() -> None:
    once = mask(f"postgresql://ann:{HIDDEN}@db/x?password={HIDDEN} token={HIDDEN}")
    assert mask(once) == once


def test_the_value_of_a_setting_is_masked_by_the_name_of_the_setting() -> None:
    assert mask_setting("spark.hadoop.fs.s3a.secret.key", HIDDEN) == MASK
    assert mask_setting("spark.driver.extraJavaOptions", f"-Xmx1g -Dx.trustStorePassword={HIDDEN}") == (
        f"-Xmx1g -Dx.trustStorePassword={MASK}"
    )
    assert mask_setting("spark.driver.memory", "900x") == "900x"


@pytest.mark.parametrize(
    "piece",
    ["word-", "secret", "secret-", "token.x ", "x://y:", "eyJ-", "eyJabcdefgh-", "eyJabcdefgh.", "a.", "://", "'secret",
     '"token":"', "token='\\\n", "-----BEGIN PRIVATE KEY ", "-----BEGIN PRIVATE KEY-----", "authorization=", "bearer ",
     "https://", "pwd%3D", "pwd={", "pwd=env:", "password : ", "--token ", "token=\\\"", "s3://a:", " ", "\t=", "AKIA",
     "sig=&", "?sig=", "-----BEGIN A ", "--secret  ", "'token'\t:", "token %3D\t", "pwd = {\n", "passphrase:\t",
     "authorization : a", "authorization=a\t", "bearer\t", "AKIAIOSFODNN7", "token=env:a_", "a.b-://c", "token=\\'",
     "--a."],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", '@"token '])
def test_the_work_grows_no_faster_than_the_text(piece: str, before: str) -> None:
    def seconds(times: int) -> float:
        text = before + piece * times
        found = []
        for _ in range(3):
            started = time.process_time()
            mask(text)
            found.append(time.process_time() - started)
        return min(found)

    assert seconds(16_000) < 0.05 + 12 * seconds(4_000)


def test_a_weak_password_uncovers_no_other() -> None:
    KNOWN_SECRETS.remember("password", "secret")
    assert "hunter2" not in mask(f"spark.hadoop.fs.s3a.secret.key={HIDDEN}")


CLIPBOARD = "\x1b]52;c;ZWNobw==\x07"
OBEYED = {"Cc", "Cs"}
BIDIRECTIONAL = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with é and 漢", "plain, with é and 漢"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        (CLIPBOARD, r"\x1b]52;c;ZWNobw==\x07"),
        ("\x1b[2J\rover", r"\x1b[2J\x0dover"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
    ],
)
def test_controls_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    for character in one_line(text):
        assert unicodedata.category(character) not in OBEYED - {"Cs"}
        assert unicodedata.bidirectional(character) not in BIDIRECTIONAL
    assert printable(printable(text)) == printable(text)
    assert len(one_line(text).splitlines()) <= 1 or "\u2028" in text or "\u2029" in text


@given(st.text().map(lambda text: text.replace("\r", "").replace("\x7f", "").replace("\n", "").replace("\t", "")))
def test_bytes_are_escaped_as_text_is(text: str) -> None:
    data = text.encode(errors="replace")
    escaped = printable_bytes(data).decode()
    assert not any(unicodedata.category(character) == "Cc" for character in escaped)


@pytest.mark.parametrize("word", ["plain", "two words", "it's", CLIPBOARD, "a'b\\c\x1b'd", "line\nbreak\ttab", ""])
def test_a_quoted_word_is_the_same_word_for_the_shell(word: str) -> None:
    done = subprocess.run(["bash", "-c", f"printf %s {quoted(word)}"], capture_output=True, check=True)
    assert done.stdout.decode() == word
    assert one_line(quoted(word)) == quoted(word)


# Secrets that a process has read are replaced by value, in whatever form a text repeats them.


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
