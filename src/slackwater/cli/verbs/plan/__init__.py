"""``slackwater plan``: shows the steps of an operation and changes nothing."""

from __future__ import annotations

from slackwater.cli.common.arguments import (
    Parser,
    Verb,
    add_consent,
    add_debug,
    add_force,
    add_format,
    add_home,
    add_spark,
    add_stream,
    add_verbs,
    path,
    string,
)
from slackwater.core.commands import mention
from slackwater.operations.goals.common.goal import GOALS, Goal, goal_named


def declare(parser: Parser) -> None:
    add_verb = add_verbs(parser)
    for goal in map(goal_named, GOALS):
        _declare(add_verb(goal.name, goal.summary), goal)


def _declare(parser: Parser, goal: Goal) -> None:
    add_stream(parser)
    for flag in goal.flags:
        parser.add_argument(
            flag.option,
            dest=flag.field,
            metavar=flag.metavar,
            default=flag.default,
            choices=flag.choices,
            type=string if flag.kind in {"string", "directory"} else str,
            help=flag.help,
        )
    if goal.runs_spark:
        add_spark(parser)
    _declare_common(parser)
    parser.set_defaults(verb="slackwater.cli.verbs.plan.write_plan:plan", goal=goal.name)


def _declare_common(parser: Parser) -> None:
    parser.add_argument("--out", dest="file", metavar="PLAN", type=path, help="write the plan to this new file")
    add_force(parser)
    parser.add_argument(
        "--pipeline",
        metavar="FILE|MODULE",
        type=string,
        help="the upgraded pipeline, if it moved; of a query that Slackwater only watches, a pipeline with its code",
    )
    parser.add_argument(
        "--downstream",
        action="store_true",
        help="plan the later stages, too, that have read what is taken out of the output; one apply, one undo",
    )
    add_home(parser)
    add_consent(parser)
    add_debug(parser)
    add_format(parser)
    parser.epilog = f"Nothing is changed. The plan is for {mention('apply')}."


VERB = Verb("Show what a remedy would do and cost, and write it to a plan file.", declare=declare)
