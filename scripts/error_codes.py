"""The page docs/errors.md: every error with its cause, and every finding."""

from __future__ import annotations

from slackwater.diagnose.error_codes import error_codes
from slackwater.diagnose.number_line import RULES

HEADING = """# Errors

Every error has a stable code, one sentence, and where it helps the place, what was expected and found, and a hint.
On stderr it is shown as `error <code>: <sentence>`, then `hint: <next step>`; with `--format json` as one line of JSON,
`{"error": {"code": ..., "message": ..., "where": ..., "expected": ..., "found": ..., "hint": ...}}`.
[exit-codes.md](exit-codes.md) explains the exit codes. `slackwater explain CODE` prints the cause of one error with its
remedy, as in `src/slackwater/diagnose/error_codes.toml`; `…` replaces what varies.
To update this page: `scripts/generate`.

| code | exit | cause |
|---|---|---|
"""

FINDINGS = """
## Findings

What `slackwater status` shows of a stream, and what `run` refuses to start for (severity `stop`). A refused start or
plan ends with the finding's code as its error. `status` ends with the most urgent exit code of all findings: 3, then 5,
then 7, else 0. The risk is what would happen to rows if the stream were started all the same.

| finding | severity | risk | exit code of status | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    """The page in Markdown."""
    errors = [
        _row(f"`{one.code}`", str(one.kind.exit_code), "; or: ".join(one.causes)) for one in error_codes().values()
    ]
    rules = sorted(RULES, key=lambda rule: rule.code)
    table = [_row(f"`{one.code}`", one.severity, one.risk, str(one.exit_code), one.meaning) for one in rules]
    texts = [
        f"\n### {one.code}\n\n" + "\n".join(f"- **{heading}**: {text}" for heading, text in one.sections.items()) + "\n"
        for one in rules
    ]
    return HEADING + "\n".join(errors) + "\n" + FINDINGS + "\n".join(table) + "\n" + "".join(texts)


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
