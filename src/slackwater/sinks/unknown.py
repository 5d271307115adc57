"""The output of a sink whose kind is not registered: nothing can be read from it and nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.errors import PipelineError, Refused, SinkUnreadable
from slackwater.model.damage import Damage
from slackwater.model.sink import Cut, Delivery, Owner, Traits
from slackwater.sinks.contract import SinkLog
from slackwater.storage.protocols import WriteStore

UNKNOWN_TRAITS = Traits(
    Delivery("at-least-once", "what the sink does with a batch that is written twice is unknown"),
    tells_written=False,
    skips_known_batches=False,
    cuts=False,
    swaps=False,
    one_writer=False,
)


class UnknownOutput:
    """An output that cannot be opened by this version."""

    def __init__(self, identity: Mapping[str, str]) -> None:
        self._kind = identity.get("kind", "none")
        self.location = " ".join(f"{key}={value}" for key, value in sorted(identity.items()))
        self.traits = UNKNOWN_TRAITS

    def last_written(self) -> int | None:
        raise SinkUnreadable(
            "sink-silent",
            f"A sink of kind {self._kind} does not show which batch was written last",
            where=self.location,
        )

    def owner(self) -> Owner | None:
        return None

    def claim(self, owner: Owner) -> None:
        """Nothing: there is no place for the mark."""

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return ()

    def log(self) -> SinkLog | None:
        return None

    def name_of(self, uri: str) -> str | None:
        return None

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        raise self._refusal(f"cut back to batch {batch} with {len(recorded)} recorded entries")

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        raise self._refusal(f"cut back to batch {cut.after}")

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        raise self._refusal(f"restored from a cut to batch {cut.after}")

    def reader_path(self) -> str:
        raise PipelineError(
            "output-unreadable",
            f"A stream cannot read the output of a sink of kind {self._kind}",
            where=self.location,
        )

    def _refusal(self, what: str) -> Refused:
        return Refused(
            "sink-uncuttable",
            f"The output of a sink of kind {self._kind} cannot be {what}",
            where=self.location,
            hint="rebuild at the last written batch, which removes nothing, or use a sink that can be cut",
        )
