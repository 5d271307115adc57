"""Files that do not exist, by what their paths say (``common/paths``): logs, state, keystores, tables, shuffle files.

A message that Spark has for such a failure comes first.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level


def _of(name: str, *codes: str) -> ErrorText:
    symptom = "file-" + name.replace(" ", "-")
    return ErrorText(symptom, codes, names=(name,), level=Level.NAMED, certainty=Certainty.LIKELY)


GROUP = (
    # A file that an option names, on a machine that does not have it: it has to be on the driver and each executor.
    _of("missing secret", "APP-09"),
    _of("missing local checkpoint", "STORE-06", "LOG-16"),
    _of("missing manifest", "FSINK-01"),
    _of("missing compacted manifest", "FSINK-02", "FSINK-01"),
    _of("missing state", "STATE-01", "STORE-06", "STORE-04"),
    _of("missing version of state", "STATE-04", "STORE-06", "STORE-04"),
    _of("missing table of state", "STATE-05", "STORE-04"),
    _of("missing schema of state", "STATE-06", "STORE-04"),
    _of("missing log of source", "FSRC-01", "FSRC-12"),
    _of("missing compacted log of source", "FSRC-02"),
    _of("missing entry of offsets", "LOG-06", "LOG-10"),
    _of("missing log of table", "SRC-01", "DELTA-06", "APP-06"),
    _of("missing file of snapshot", "SRC-01", "STORE-04"),
    _of("missing data file", "FSRC-03", "FSINK-06", "STORE-04"),
    _of("missing shuffle file", "APP-02", "APP-03"),
)
