"""Logging: structlog writes to stderr, as JSON or plain text. stdout is for data."""

from __future__ import annotations

import logging
import sys

import structlog

from slackwater.masking import mask

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(*, level: str, json: bool) -> None:
    """Send every log line to stderr, from ``level`` up; ``json`` for machines, else plain text for people."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _mask_secrets,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _mask_secrets(_logger: object, _method: str, fields: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {name: mask(value) if isinstance(value, str) else value for name, value in fields.items()}
