"""Slackwater runs PySpark Structured Streaming pipelines and makes stopping, upgrading and restarting them safe.

The names in ``__all__`` are the public surface; everything else may change. Importing this package imports no pyspark,
and each public name brings its module when it is first used: most commands need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater import sinks, triggers
    from slackwater.core.errors import SlackwaterError
    from slackwater.runtime.application.watch import watch
    from slackwater.runtime.pipeline import Pipeline, StreamContext

__version__ = "0.1.0"

__all__ = ["Pipeline", "SlackwaterError", "StreamContext", "__version__", "sinks", "triggers", "watch"]

_MODULES = {
    "Pipeline": "slackwater.runtime.pipeline",
    "SlackwaterError": "slackwater.core.errors",
    "StreamContext": "slackwater.runtime.pipeline",
    "sinks": "slackwater.sinks",
    "triggers": "slackwater.triggers",
    "watch": "slackwater.runtime.application.watch",
}

# Type checkers read the imports above; with this function in sight they would take any name for a public one.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - only where a name is used

        module = import_module(_MODULES[name])
        value = module if name in {"sinks", "triggers"} else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
