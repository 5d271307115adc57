"""Projects with later stages, without Spark: ``clicks/per_page``, and streams that read the files of its output."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from slackwater.ledger.recording.stream_files import write_stream_file_of
from tests.support.homes import HomeSpec, add_stream
from tests.support.rebuilds import Project, make_project

DAY, MONTH, IDLE = "clicks/day", "clicks/month", "clicks/idle"
STAGE = HomeSpec()


@dataclass(frozen=True)
class Stages(Project):
    """A project of which every stream is looked at."""

    def in_use(self) -> dict[str, str]:
        found = super().in_use()
        for stage in sorted((self.home / "streams" / "clicks").iterdir()):
            found |= self.files(stage / "checkpoints", self.folder / stage.name)
            found[f"{stage.name}/stream.json"] = (stage / "stream.json").read_text()
        return found


def make_stages(folder: Path, stages: Mapping[str, tuple[str, HomeSpec]]) -> Stages:
    """The project with further streams, each with the folder it reads: batch N reads ``part-N.parquet``."""
    made = make_project(folder)
    made.claim_output()
    project = Stages(made.folder, made.home)
    for name, (reads, spec) in stages.items():
        add_stage(project, name, reads, spec)
    return project


def three_stages(folder: Path) -> Stages:
    """``out`` is read by ``day``, which is read by ``month``; ``idle`` has read only the oldest batches of ``out``."""
    idle = HomeSpec(planned=1, committed=1, state=1, written=1)
    return make_stages(folder, {"day": ("out", STAGE), "month": ("day", STAGE), "idle": ("out", idle)})


def add_stage(project: Project, name: str, reads: str, spec: HomeSpec) -> None:
    spec = replace(spec, reported=tuple(range(spec.planned + 1)))
    with project.open() as workspace:
        add_stream(workspace.ledger, project.home, spec, name, reads)
        write_stream_file_of(workspace.home, workspace.ledger, f"clicks/{name}")


def read_uncopied(project: Project, name: str, file: str, batch: int) -> None:
    """Have ``clicks/name`` read a file, as its own log records it; no copy of that is in the ledger yet."""
    log = project.home / "streams" / "clicks" / name / "checkpoints" / "0001" / "sources/0" / str(batch)
    entry = {"path": f"file://{project.folder}/{file}", "timestamp": 1, "batchId": batch}
    log.write_text(f"v1\n{json.dumps(entry)}")


def read_next(project: Project, name: str, batch: int) -> None:
    """Have ``clicks/name`` plan a batch that reads one more entry of its source's own log."""
    offsets = project.home / "streams" / "clicks" / name / "checkpoints" / "0001" / "offsets"
    text = (offsets / str(batch - 1)).read_text()
    (offsets / str(batch)).write_text(text.replace(f'"logOffset":{batch - 1}', f'"logOffset":{batch}'))
