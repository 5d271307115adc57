"""What the words of a message say: the kinds of failures that any library may report in its own words."""

from __future__ import annotations

import re

_MESSAGE_MAX = 600
_PREFIX = re.compile(r"(?s)^.{0,300}?\b\w*(?:Exception|Error): ['\"]?")
"""What is printed before the message of an exception: words of whoever has logged it."""

CLASS = re.compile(
    r"(?<![\w.$/])((?:[a-z_][\w$]{0,60}[./]){0,12}[A-Z][\w$]{0,80}(?:Exception|Error|Failure))(?![\w.$/(])"
)

_POSITION = (
    r"(?:offset|sequence ?(?:number|no)|snapshot|resume (?:token|point)|instant|cursor|message id|commit time)s?\b"
)
_GONE = (
    r"(?:expired|no longer|not (?:be )?(?:found|available|exist|valid)|n[o']t exist|invalid\b|out of range|removed"
    r"|cleaned|truncated|less than the|aged? out|purged|too old)"
)
_FAILS = (
    r"(?:error|fail\w*|unable|could not|cannot|exception) (?:(?:while|when|to|in|during) )?(?:the |a |an )?(?:stream )?"
)

_ALTERNATIVES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("name", (r"does(?: not|n't) exist or (?:is |was )?not authori[sz]ed",)),
    ("memory", (r"out ?of ?memory|memory limit|heap space|insufficient memory|oom[- ]?killed",)),
    (
        "space",
        (r"no space left|disk (?:is )?full|disk quota|quota exceeded|too many open files|read-only file system",),
    ),
    (
        "position",
        (
            rf"{_POSITION}[^\n]{{0,120}}?{_GONE}",
            r"(?:cannot|can't|could not|unable to|not possible to) resume",
            r"(?:cannot|can't|could not|unable to) find (?:the )?(?:snapshot|offset|instant)",
            r"versions?\b[^\n]{0,80}(?:no longer|has expired|was removed|been cleaned)",
            r"already been (?:cleaned|expired)",
        ),
    ),
    (
        "library",
        (
            r"class(?:es)? \S+ (?:could |can|was |is )?not (?:be )?(?:found|loaded)|unable to find \w+ class",
            r"could not (?:find or )?load (?:main )?class|(?:incompatible|mismatched) (?:class|version|scala|spark)",
            r"version mismatch|unsupported (?:protocol |api )?version",
            r"(?:requires|built for|compiled (?:for|with|against)) (?:spark|scala|java|hadoop|kafka)\b",
        ),
    ),
    (
        "unreachable",
        (
            r"tim(?:ed|e) ?-?out\b|unreachable|\bunavailable|not (?:currently )?available\b|server is (?:down|busy)",
            r"connection (?:was |is |has been )?(?:refused|reset|closed|lost|failed|aborted|terminated|error)",
            r"(?:failed|unable|cannot|can't|could not|couldn't|error) (?:to )?(?:connect|reach|resolve)",
            r"(?:failed|unable|cannot|can't|could not|couldn't|error) (?:to )?open (?:a |native )*conn",
            r"establish (?:an? )?(?:\w+ )?connection|no (?:route to|available|live|healthy|reachable) ",
            r"throttl|rate.?limit|too many requests|slow down|overloaded",
            r"(?:status|code|http)\W{0,3}(?:code\W{0,3})?(?:429|500|502|503|504)\b|handshake|certificat|disconnected",
            r"reached (?:the )?end of (?:the )?stream|service temporarily|try again later|name or service not known",
        ),
    ),
    (
        "access",
        (
            r"(?:incorrect|wrong|bad|invalid) (?:user ?name|user|password|credential|login|api.?key)",
            r"permission|access (?:is |was )?denied|unauthori[sz]ed|not authori[sz]ed|forbidden|credential",
            r"\btoken\b.{0,60}expire|(?:status|code|http)\W{0,3}(?:code\W{0,3})?(?:401|403)\b|authenticat",
            r"not allowed to|invalid (?:token|password|login)",
        ),
    ),
    (
        "process",
        (r"(?:worker|executor|container|process|daemon|pod)\b.{0,60}(?:exit|kill|lost|crash|died|termin|shut)",),
    ),
    ("conflict", (r"already exists|conflict|concurrent(?:ly)? |deadlock|\block\b|locked by|optimistic",)),
    (
        "record",
        (
            r"pars(?:e|ing)\b|decod|deseriali[sz]|malformed|corrupt|unexpected (?:character|token|end|byte)",
            r"invalid (?:json|avro|record|utf|xml|date|timestamp|number)|unmarshal",
            r"not a valid|not an? \w+ (?:data )?file\b|read (?:the )?footer|magic (?:number|byte)",
            r"truncated|unexpected eof|premature (?:end|eof)|not in \w+ format",
        ),
    ),
    (
        "unsupported",
        (
            r"not (?:yet )?support|unsupported|doesn't support|does not support|only supported|not implemented",
            r"cannot be (?:used|called) (?:with|on|in)|not allowed (?:in|on|for|with)",
        ),
    ),
    (
        "option",
        (
            r"\boptions?\b(?!\{)|configur|\bpropert(?:y|ies)\b|\bparameters?(?:\(s\))?\b|\bsettings?\b",
            r"must be (?:set|specified|provided|one of|positive)|must exist|is required|missing required",
            r"not (?:set|specified|configured|defined)\b|invalid (?:value|argument|url|uri|name|format)",
            r"illegal character|please (?:set|specify|provide|configure)",
        ),
    ),
    (
        "name",
        (
            r"(?:does not|doesn't|did not|not) exist|not (?:be |been )?found|no such|\bno \w+ (?:was |were )?found",
            r"cannot find|couldn't find|could not find|can't find|undefined|cannot resolve|is missing",
            r"unknown (?:table|column|field|topic|database|index|collection|keyspace|dataset|stream|queue)",
        ),
    ),
    (
        "row",
        (
            r"schema|mismatch|incompatib|null value|(?:cannot|can't|must not) be null|constraint",
            r"too (?:long|large|big)|out of range|data ?type|cannot (?:be )?(?:cast|convert)|duplicate|field",
        ),
    ),
    (
        "reading fails",
        (rf"{_FAILS}(?:describ|list|fetch|get|read|retriev|poll|subscrib|consum|receiv|discover)",),
    ),
    (
        "writing fails",
        (rf"{_FAILS}(?:writ|insert|commit|sav|flush|send|publish|produc|upsert|load|upload|append|merg)",),
    ),
)
_SAYS = tuple((name, re.compile("|".join(words), re.IGNORECASE)) for name, words in _ALTERNATIVES)


def said_by(message: str) -> str | None:
    """The kind of failure that the words of a message name; None if they name none."""
    words = CLASS.sub(" ", _PREFIX.sub("", message.strip())[-_MESSAGE_MAX:])
    return next((name for name, pattern in _SAYS if pattern.search(words)), None)
