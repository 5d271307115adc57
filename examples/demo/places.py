"""The demo's paths: one folder with a working directory for each run of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slackwater.cli.verbs.init import SETTINGS

GOLD = "sensor-merge-gold"
STREAMS = {
    "sensor-raw-ingest": "out/raw",
    "sensor-deserialize": "out/readings",
    "sensor-deserialize-rejects": "out/rejects",
    GOLD: "out/gold",
}
"""The streams of examples/weather.py and their outputs; weather_tables.py writes the last one to a database."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """A working directory as a user has it: a pipeline, ``slackwater.toml``, ``landing/`` and what a run makes."""

    folder: Path
    pipeline: str = "weather"

    @property
    def pipeline_file(self) -> Path:
        """The pipeline that is run here."""
        return self.folder / f"{self.pipeline}.py"

    def output(self, stream: str) -> Path:
        """The output of one of the streams."""
        return self.folder / STREAMS[stream]

    def checkpoint(self, stream: str, generation: int) -> Path:
        """A stream's checkpoint."""
        return self.folder / ".slackwater" / "streams" / self.pipeline / stream / "checkpoints" / f"{generation:04d}"

    def furnish(self, pipeline: str, landing: Path) -> None:
        """Write a pipeline file, its settings and a link to the input."""
        self.folder.mkdir(parents=True)
        self.pipeline_file.write_text(pipeline, encoding="utf-8")
        # Settings are searched for upward: without a file here those of a surrounding project would apply.
        (self.folder / "slackwater.toml").write_text(SETTINGS, encoding="utf-8")
        (self.folder / "landing").symlink_to(landing, target_is_directory=True)
