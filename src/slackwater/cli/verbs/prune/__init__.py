"""``slackwater prune``: deletes old generations of checkpoints, and backups that only their undo needs."""

from __future__ import annotations

from slackwater.cli.common.arguments import Parser, Verb, add_consent, add_format, add_home, natural, string


def declare(parser: Parser) -> None:
    parser.add_argument("stream", metavar="STREAM", nargs="?", type=string, help="only this one (default: all)")
    parser.add_argument(
        "--keep",
        metavar="N",
        type=natural,
        required=True,
        help="how many generations to keep in addition to the one in use",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = (
        "What was deleted cannot be restored, and an operation whose old generation was deleted cannot be undone. "
        "A running stream is not disturbed. An interrupted prune is finished by the next one."
    )
    parser.set_defaults(verb="slackwater.cli.verbs.prune.delete:prune")


VERB = Verb(
    "Delete old generations of checkpoints, and the backups of operations that then cannot be undone.",
    declare=declare,
)
