"""The one tree of errors; every error a user can meet is a leaf of it.

    SlackwaterError                exit 1   a defect in Slackwater, never raised by itself
    |-- UsageError                 exit 2   a flag, file, setting or name that cannot be used as given
    |   |-- PipelineError                   the pipeline file, or a stream in it, is not usable
    |   |   `-- SinkUnknown                   there is no sink of this name
    |   `-- SettingsError                   slackwater.toml or SLACKWATER_* is not usable
    |-- NotFound                   exit 4   no such stream, checkpoint, plan or output
    |-- Refused                    exit 5   nothing was changed, because it would not be safe
    |   |-- LeaseHeld                       another process may be writing to the stream
    |   `-- Moved                           a precondition of a plan no longer holds
    |-- OutcomeUnknown             exit 6   something may have been changed; nothing more is touched
    |-- StreamFailed               exit 7   a streaming query ended with an error
    |-- EnvironmentMissing         exit 9   Java, an extra, a connector jar or a server is missing
    `-- DataError                  exit 3   bytes on a store do not match their format
        |-- FormatError                     a file does not decode (readers turn it into damage)
        `-- SinkUnreadable                  the newest batch in a sink cannot be read

Each carries a stable ``code``, one complete sentence, the place, what was expected and found, and a hint: the next
command to type. Foreign exceptions are translated once, where they are met, with ``from``. Secrets are masked here, so
that no error can show or store one.
"""

from slackwater.core.escaping import one_line
from slackwater.core.masking import mask


class SlackwaterError(Exception):
    exit_code = 1

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.code = code
        self.message = mask(message)
        self.where = _masked(where)
        self.expected = _masked(expected)
        self.found = _masked(found)
        self.hint = _masked(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        place = f" at {one_line(self.where)}" if self.where else ""
        expected = f"; expected {self.expected}" if self.expected else ""
        found = f"; found {self.found}" if self.found else ""
        return f"{self.message}{place}{expected}{found}"

    def as_dict(self) -> dict[str, str]:
        names = ("code", "message", "where", "expected", "found", "hint")
        return {name: value for name in names if (value := getattr(self, name))}

    def getCondition(self) -> str:
        """Return the code, as ``PySparkException.getCondition`` returns its error condition."""
        return self.code

    def getMessageParameters(self) -> dict[str, str]:
        """Return place, expected, found and hint, as far as there are any."""
        return {name: value for name, value in self.as_dict().items() if name not in {"code", "message"}}


def _masked(text: str | None) -> str | None:
    return mask(text) if text is not None else None


class UsageError(SlackwaterError):
    """A flag, file, setting or name cannot be used as given."""

    exit_code = 2


class PipelineError(UsageError):
    """The pipeline file, or a stream in it, cannot be used."""


class SinkUnknown(PipelineError, AttributeError):
    """There is no sink of this name. An AttributeError too, so that ``hasattr(slackwater.sinks, name)`` is false."""


class SettingsError(UsageError):
    """``slackwater.toml`` or a ``SLACKWATER_*`` variable cannot be used."""


class NotFound(SlackwaterError):
    """There is no such stream, checkpoint, plan or output."""

    exit_code = 4


class Refused(SlackwaterError):
    """Nothing was changed, because it would not be safe."""

    exit_code = 5


class LeaseHeld(Refused):
    """Another process may be writing to the stream."""


class Moved(Refused):
    """A precondition of a plan no longer holds."""


class OutcomeUnknown(SlackwaterError):
    """Something may have been changed; nothing more is changed, and the hint is how to find out."""

    exit_code = 6


class StreamFailed(SlackwaterError):
    """A streaming query ended with an error."""

    exit_code = 7


class EnvironmentMissing(SlackwaterError):
    """Java, an optional dependency, a connector jar, a server, a permission, a lock or space on a disk is missing."""

    exit_code = 9


def unreachable(what: str, error: OSError, where: str | None = None) -> EnvironmentMissing:
    """The error of a store that does not answer, or refuses."""
    return EnvironmentMissing(
        "store-unreachable",
        f"{what} cannot be reached",
        where=where,
        found=error.strerror or str(error),
        hint="check its address, the network and the credentials of this user, and repeat the command",
    )


class DataError(SlackwaterError):
    """Bytes on a store do not match their format."""

    exit_code = 3


class FormatError(DataError):
    """A file cannot be decoded. Readers of checkpoints turn it into a ``Damage`` value and continue."""


class SinkUnreadable(DataError):
    """The newest batch in a sink cannot be read.

    ``aside``: the batch that a damaged file shows, and the command that puts the file aside. Without it the sink shows
    the batches before.
    """

    def __init__(self, code: str, message: str, *, aside: tuple[int, str] | None = None, **rest: str | None) -> None:
        super().__init__(code, message, **rest)
        self.aside = aside


class SinkUnchecked(SinkUnreadable):
    """An output would show its newest batch, and Slackwater cannot look at it. It is treated as one that shows none."""
