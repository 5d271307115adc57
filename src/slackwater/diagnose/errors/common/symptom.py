"""The types of a symptom: what declares it in a group, and what is returned where it was recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Certainty(StrEnum):
    """``CERTAIN``: the text has one cause. ``LIKELY``: the first code is the usual cause. ``POSSIBLE``: a hint only."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Level(IntEnum):
    """What a text is in a log; an earlier level is reported first.

    ``CAUSE`` names what failed. ``NAMED`` is known by the name of an error condition or exception alone. ``WRAPPER`` is
    printed around other causes, and counts where no cause is known. ``GENERAL`` is the class of an exception, reported
    where none of them is recognised. ``COMPLAINT`` is what a person says without any message. ``WORDS`` are the words
    of an unknown message, reported where nothing else is, and before ``CATCH_ALL``, a class that its library throws for
    all failures. ``NOTE`` is a message of a query that continues.
    """

    CAUSE = 0
    NAMED = 1
    WRAPPER = 2
    GENERAL = 3
    COMPLAINT = 4
    WORDS = 5
    CATCH_ALL = 6
    NOTE = 7


@dataclass(frozen=True, slots=True)
class Near:
    """Codes that come first if one of ``literals``, such as a stack frame, is close to the text.

    ``certainty`` replaces the certainty of the text, if it is given.
    """

    literals: tuple[str, ...]
    codes: tuple[str, ...]
    certainty: Certainty | None = None


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One symptom as data.

    ``texts`` are templates (``common/template``), the most informative first. ``codes`` are the catalogue's codes that
    the texts may mean, the most likely first. A text counts only close to one of ``needs``, if there are any. ``names``
    are error conditions, SQLSTATEs and exceptions (``common/names``); where they are part of a text, the text counts.
    ``follows`` are codes of which this is a consequence: where one of them is certain, that failure is reported first.
    ``below`` names two values of the message: the text counts only where the first is smaller than the second.
    ``says`` is what is known of this text beyond what the catalogue has for its first code.
    """

    symptom: str
    codes: tuple[str, ...]
    texts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    level: Level = Level.CAUSE
    certainty: Certainty | None = None
    near: tuple[Near, ...] = ()
    needs: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    below: tuple[str, str] | None = None
    says: str = ""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A symptom that was recognised in a text.

    ``params`` are values of the message, such as ``batch`` or ``path``; ``line`` is the matched text up to the end of
    its line. Both are masked. ``where`` is the number of the line in the input, from 1. ``says`` is what is known of it
    beyond what the catalogue has for its first code.
    """

    symptom: str
    codes: tuple[str, ...]
    line: str
    where: int
    certainty: Certainty
    level: Level
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    says: str = ""
