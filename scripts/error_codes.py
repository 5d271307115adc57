"""The page docs/errors.md: every error with its cause, and every finding."""

from __future__ import annotations

from slackwater.diagnose.catalogue import error_codes
from slackwater.diagnose.number_line import RULES

HEADING = """# Errors

Every error has a stable code and one sentence, and often the place, the expected and found values, and a hint. On
stderr it is shown as `error <code>: <sentence>`, then `hint: <next step>`; with `--format json` as one line of JSON,
`{"error": {"code": ..., "message": ..., "where": ..., "expected": ..., "found": ..., "hint": ...}}`.
`slackwater explain CODE` also prints the remedy. Below are the causes by [exit code](exit-codes.md); `…` replaces what
varies.
"""

EXIT_CODE = """
## Exit code {}
"""

FINDINGS = """
## Findings

`slackwater status` shows the findings of a stream; `run` refuses to start if one has the severity `stop`. A refused
start or plan ends with the finding's code as its error. The risk is what would happen to rows if the stream were
started all the same.
"""


def page() -> str:
    """The page in Markdown."""
    errors = error_codes().values()
    causes = [
        EXIT_CODE.format(exit_code)
        + "".join(
            f"\n### {one.code}\n\n{' '.join('; or: '.join(one.causes).split())}\n"
            for one in errors
            if one.kind.exit_code == exit_code
        )
        for exit_code in sorted({one.kind.exit_code for one in errors})
    ]
    rules = sorted(RULES, key=lambda rule: rule.code)
    texts = [
        f"\n### {one.code}\n\n{one.meaning} "
        f"*{one.severity.capitalize()}; {one.risk}; exit code of status: {one.exit_code}.*\n\n"
        + "".join(
            f"- **{heading.removeprefix('How to ').capitalize()}**: {text}\n" for heading, text in one.sections.items()
        )
        for one in rules
    ]
    return HEADING + "".join(causes) + FINDINGS + "".join(texts)
