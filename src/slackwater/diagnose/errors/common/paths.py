"""Whose file is missing: the path of a file that does not exist says what it belongs to.

The class of such an exception, ``FileNotFoundException``, is the same for a log of the checkpoint, a file of state, a
file of the input and a keystore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from slackwater.diagnose.errors.common.template import Place
from slackwater.formats.compactible import SINK_LOG

_MISSING = re.compile(
    r"FileNotFound|NoSuchFile|No such file or directory|does(?: not|n't) exist|NoSuchKey|FileNotFoundError|not found"
)
_AROUND_CHARACTERS = 400
_PLACES_MAX = 50
_OTHER_REASON = re.compile(r"^ \((?!No such file)[A-Z]")
"""After a path: Java says in brackets why a file cannot be opened, also where the file exists."""
_PATH = re.compile(r"""[^\s'"`<>|,;()\[\]]{4,512}""")

_OWNERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("missing secret", r"(?:\.(?:jks|p12|pfx|pem|crt|cer|keytab|keystore|truststore)|jaas\w*\.conf|krb5\.conf)$"),
        ("missing local checkpoint", r"(?:^|/)temporary-[0-9a-f-]{36}(?:/|$)"),
        ("missing compacted manifest", rf"/{SINK_LOG}/\d+\.compact$"),
        ("missing manifest", rf"/{SINK_LOG}(?:/\d+)?$"),
        ("missing version of state", r"/state/\d+/\d+/(?:[\w-]+/)?\d+(?:_[\w-]+)?\.zip$"),
        ("missing state", r"/state/\d+/\d+/(?:[\w-]+/)?\.?\d+(?:_[\w-]+)?\.(?:delta|snapshot|changelog)$"),
        ("missing table of state", r"/state/\d+/\d+/SSTs/"),
        ("missing schema of state", r"/state/\d+/(?:\d+/)?_(?:metadata|stateSchema)/"),
        ("missing compacted log of source", r"/sources/\d+/\d+\.compact$"),
        ("missing log of source", r"/sources/\d+/\d+$"),
        ("missing entry of offsets", r"/offsets/\d+$"),
        ("missing log of table", r"/_delta_log/|\.hoodie/"),
        ("missing file of snapshot", r"/metadata/(?:snap-)?[\w-]+\.(?:avro|metadata\.json)$"),
        ("missing data file", r"/part-\d{5}-[0-9a-f-]{36}[^/]*\.(?:csv|json|txt|xml|avro|orc|parquet|gz)$"),
        ("missing shuffle file", r"/blockmgr-[0-9a-f-]{36}/"),
    )
)


def missing_places(text: str) -> Iterator[tuple[str, Place]]:
    """The last place of each kind of file that a text calls missing."""
    found: dict[str, Place] = {}
    for match in list(_MISSING.finditer(text))[-_PLACES_MAX:]:
        line_start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - _AROUND_CHARACTERS)
        line_end = text.find("\n", match.end(), match.end() + _AROUND_CHARACTERS)
        line = text[line_start : line_end if line_end >= 0 else match.end() + _AROUND_CHARACTERS]
        for written in _PATH.finditer(line):
            path = written[0].rstrip(".:")
            name = next((name for name, owner in _OWNERS if owner.search(path)), None)
            if name is not None and not _OTHER_REASON.match(line[written.end() :]):
                found[name] = Place(line_start, line_start + len(line), {"path": path})
    yield from found.items()
