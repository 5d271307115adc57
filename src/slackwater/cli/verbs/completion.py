"""``slackwater completion``: prints a shell's completion script, generated from all parsers."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from slackwater.cli.common.arguments import VERBS, Option, Parser, declare_verb
from slackwater.cli.common.declare_changing import Shell
from slackwater.core.commands import command


@dataclass(frozen=True, slots=True)
class Command:
    """A verb, or a verb of a verb; ``words`` are typed, such as ``("plan", "rebuild")``. ``next``: words that may
    follow.
    """

    words: tuple[str, ...]
    summary: str
    options: tuple[Option, ...]
    next: tuple[tuple[str, str], ...] = ()


def completion(*, shell: Shell) -> int:
    scripts: dict[Shell, Callable[[list[Command]], Iterable[str]]] = {
        Shell.BASH: _bash,
        Shell.ZSH: _zsh,
        Shell.FISH: _fish,
    }
    sys.stdout.write("\n".join(scripts[shell](commands())) + "\n")
    return 0


def commands() -> list[Command]:
    """All commands, those with more words first; the last is ``slackwater``."""

    found: list[Command] = []
    for name, summary in VERBS.items():
        parser = Parser(f"slackwater {name}", description=summary)
        declare_verb(name, parser)
        found += _commands_of(parser, (name,))
    top = Command((), "", (Option(("-h", "--help"), "show this help", takes_value=False),), tuple(VERBS.items()))
    return [*sorted(found, key=lambda one: -len(one.words)), top]


def _commands_of(parser: Parser, words: tuple[str, ...]) -> list[Command]:
    verbs = parser.verbs()
    summaries = tuple((name, verb.description or "") for name, verb in verbs.items())
    values = tuple((value, "") for value in parser.values())
    one = Command(words, parser.description or "", tuple(parser.options()), summaries + values)
    return [one, *(inner for name, verb in verbs.items() for inner in _commands_of(verb, (*words, name)))]


def _values(found: list[Command]) -> dict[str, tuple[str, ...]]:
    options = (option for one in found for option in one.options if option.takes_value)
    return {name: option.values for option in options for name in option.names}


def _bash(found: list[Command]) -> Iterable[str]:
    yield f"# bash completion for slackwater: source <({command('completion', 'bash')})"
    yield "_slackwater() {"
    yield '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words'
    yield '    local typed="${COMP_WORDS[*]:1:COMP_CWORD-1} "'
    yield "    COMPREPLY=()"
    yield '    case "$typed" in'
    for one in found:
        options = (name for option in one.options for name in option.names)
        words = " ".join((*(name for name, _ in one.next), *options))
        yield f'        {_prefix(one)}*) words="{words}" ;;'
    yield "    esac"
    yield '    case "$previous" in'
    values = _values(found)
    # Without an answer, readline completes names of files.
    yield f'        {"|".join(name for name in values if not values[name])}) words="" ;;'
    yield from (f'        {name}) words="{" ".join(values[name])}" ;;' for name in values if values[name])
    yield "    esac"
    yield '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")'
    yield "}"
    yield "complete -o default -F _slackwater slackwater"


def _zsh(found: list[Command]) -> Iterable[str]:
    yield "#compdef slackwater"
    yield f"# zsh completion for slackwater: source <({command('completion', 'zsh')})"
    yield "_slackwater() {"
    yield '    local typed="${(j: :)words[2,CURRENT-1]} "'
    yield "    local -a verbs options"
    yield '    case "${words[CURRENT-1]}" in'
    values = _values(found)
    yield f"        {'|'.join(name for name in values if not values[name])}) _files; return ;;"
    yield from (f"        {name}) compadd -- {' '.join(values[name])}; return ;;" for name in values if values[name])
    yield "    esac"
    yield '    case "$typed" in'
    for one in found:
        verbs = " ".join(_zsh_item(name, summary) for name, summary in one.next)
        options = " ".join(_zsh_item(name, option.summary) for option in one.options for name in option.names)
        yield f"        {_prefix(one)}*) verbs=({verbs}) options=({options}) ;;"
    yield "    esac"
    yield '    if [[ "${words[CURRENT]}" == -* ]]; then'
    yield "        _describe -o option options"
    yield "    elif (( $#verbs )); then"
    yield "        _describe verb verbs"
    yield "    else"
    yield "        _files"
    yield "    fi"
    yield "}"
    yield 'if [[ "${funcstack[1]}" == _slackwater ]]; then _slackwater "$@"; else compdef _slackwater slackwater; fi'


def _zsh_item(name: str, summary: str) -> str:
    return _quoted(f"{name}:{summary}" if summary else name)


def _prefix(one: Command) -> str:
    return f'"{" ".join(one.words)} "' if one.words else ""


def _fish(found: list[Command]) -> Iterable[str]:
    yield f"# fish completion for slackwater: {command('completion', 'fish')} | source"
    for one in found:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in one.words)
        inner = " ".join(name for name, _ in one.next)
        missing = f"not __fish_seen_subcommand_from {inner}"
        for name, summary in one.next:
            condition = f"{seen}; and {missing}" if seen else missing
            described = f" -d {_quoted(summary)}" if summary else ""
            yield f"complete -c slackwater -f -n {_quoted(condition)} -a {name}{described}"
        for option in one.options if seen else ():
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            needs_value = " -r" if option.takes_value else ""
            value = f" -x -a {_quoted(' '.join(option.values))}" if option.values else needs_value
            yield f"complete -c slackwater -n {_quoted(seen)} {names}{value} -d {_quoted(option.summary)}"


def _quoted(text: str) -> str:
    """Quotes for zsh and fish; neither help text nor conditions contain a backslash."""
    return "'" + text.replace("'", "'\\''") + "'"
