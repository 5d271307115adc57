"""What a terminal would obey is shown as an escape, and a word with such characters can still be typed."""

from __future__ import annotations

import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.escaping import one_line, printable, printable_bytes, quoted

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
