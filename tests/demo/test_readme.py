"""The README and the guides, read one after another: their commands work as they are written, in an empty folder."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from examples.demo.commands import Commands
from examples.demo.compare import rows_of, timestamp_of
from examples.demo.kill import KillPoint, kill_in_the_middle
from slackwater.cli.verbs.init import CLICKS_FILES, examples_folder, read_example
from tests.docs.reader import Reader, steps_of
from tests.support import warm_python
from tests.support.warm_jvm import attached

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
READ = (
    "run",
    "what-is-wrong",
    "state-schema-changed",
    "deleted-checkpoint",
    "bad-rows",
    "undo",
    "by-hand",
    "two-jobs",
    "move",
)
"""The guides whose commands are typed, in this order, after those of the README."""

OF_OTHER_TESTS = {
    "kafka": "tests/connectors and tests/demo start the broker, and run the demo with it; jars need a network",
    "tables": "tests/demo runs it with a broker and a server",
    "kafka-retention": "tests/diagnose/live/test_kafka.py deletes records of a broker, and types what doctor prints",
    "foreach-batch": "tests/docs/test_foreach_batch_guide.py runs its pipeline",
    "service": "tests/docs/test_services.py checks its files",
}
"""The other guides, and why their commands are not typed here."""


def page_of(name: str) -> str:
    return (GUIDES / f"{name}.md").read_text(encoding="utf-8")


README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = "\n".join([README, *map(page_of, READ)])


def block_with(text: str, language: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGES, flags=re.DOTALL | re.MULTILINE)
    found = [block for block in blocks if text in block]
    assert len(found) == 1, f"{len(found)} blocks with {text!r}"
    return str(found[0])


def test_the_pipeline_in_the_readme_is_the_example() -> None:
    assert block_with('sw.Pipeline("clicks")', "python") == read_example("clicks.py")


def expected_clicks(folder: Path, files: int | None = None) -> Counter[tuple[datetime, str, int]]:
    """Counted here, without Spark: all minutes that ended ten minutes before the newest click of the first files."""
    lines = [json.loads(line) for file in sorted(folder.iterdir())[:files] for line in file.read_text().splitlines()]
    clicks = [(datetime.fromisoformat(line["clicked_at"]), line["page"]) for line in lines]
    minutes = Counter((time.replace(second=0), page) for time, page in clicks)
    closed = max(time for time, _ in clicks) - timedelta(minutes=10)
    return Counter(
        (start, page, count) for (start, page), count in minutes.items() if start + timedelta(minutes=1) <= closed
    )


def written_clicks(output: Path) -> Counter[tuple[datetime, object, object]]:
    rows = rows_of(output).items()
    return Counter({(timestamp_of(row, "start"), dict(row)["page"], dict(row)["clicks"]): times for row, times in rows})


@pytest.mark.thorough
@pytest.mark.spark
def test_a_stream_whose_checkpoint_is_deleted_after_a_kill_is_rebuilt_as_the_guide_says(tmp_path: Path) -> None:
    shutil.copy2(examples_folder() / "clicks.py", tmp_path)
    subprocess.run([sys.executable, examples_folder() / "make_clicks.py"], cwd=tmp_path, check=True)
    lines = block_with("slackwater plan rebuild per_page", "sh").splitlines()
    remove, *steps = [shlex.split(line, comments=True) for line in lines if line.strip()]
    checkpoint = tmp_path / ".slackwater/streams/clicks/per_page/checkpoints/0001"
    with Commands(tmp_path / "logs", {}) as commands:
        assert steps[-1] == ["slackwater", "run", "clicks.py", "--until-caught-up"]
        running = commands.start("run-killed", ["-m", *steps[-1]], tmp_path)
        kill_in_the_middle(running, KillPoint(checkpoint, tmp_path / "out/per_page", least_position=8))
        assert remove == ["rm", "-r", str(checkpoint.relative_to(tmp_path))]
        shutil.rmtree(checkpoint)
        for step in steps:
            done = warm_python.run(step[1:], tmp_path, attached(tmp_path))
            assert done.returncode == 0, done.stderr
    assert [step[1] for step in steps] == ["plan", "apply", "run"]
    assert written_clicks(tmp_path / "out/per_page") == expected_clicks(tmp_path / "clicks")
    assert datetime(2026, 1, 5, 8, tzinfo=UTC) in {start for start, _, _ in written_clicks(tmp_path / "out/per_page")}


NOT_TYPED = {
    "scripts/demo": "tests/demo runs the demo",
    "scripts/test": "runs this test",
    "slackwater undo OPERATION": "the streams have run since, so it would be refused; tests/restart undoes",
}
"""Commands that the test below leaves out, and why."""

REFUSED = {
    "slackwater status per_page --home moved-home": 5,
    "slackwater doctor per_page --error driver.log": 1,
    "slackwater doctor .slackwater/streams/clicks/per_page/checkpoints/0001 --sink out/per_page": 5,
}
"""Commands that refuse or find something, as the guides say, and their exit codes."""

WORDS_MAX = 1000


def test_the_readme_is_one_screen_and_the_start_page_leads_to_every_guide() -> None:
    assert len(README.split()) <= WORDS_MAX
    named = {path.stem for path in GUIDES.iterdir()}
    assert named == {*READ, *OF_OTHER_TESTS}
    assert named == set(re.findall(r"guides/([a-z-]+)\.md", (ROOT / "docs" / "index.md").read_text()))


@pytest.mark.spark
def test_the_readme_and_the_guides_word_for_word(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    steps = steps_of(PAGES)
    left_out = [step for step in steps if step.command.partition("  ")[0].strip() in NOT_TYPED]
    assert len(left_out) == len(NOT_TYPED)
    with Reader(folder, attached) as reader:
        for step in steps:
            if step not in left_out:
                typed = reader.type(step)
                assert typed.code == REFUSED.get(step.command.partition("  ")[0].strip(), 0), (
                    f"$ {step.command}\n{typed.output}"
                )
    project = folder / "try"
    assert written_clicks(project / "out" / "per_minute") == expected_clicks(project / "clicks", CLICKS_FILES)
    assert written_clicks(project / "out" / "per_page") == expected_clicks(project / "clicks")
    days = rows_of(project / "out" / "gold")
    measured = {(timestamp_of(row, "day"), dict(row)["station"]) for row in days}
    # Seven files of ten days; the watermark is two days behind, so the last three days are not written yet.
    assert len(measured) == days.total() == 67 * 3
    assert {day for day, _ in measured} == {FIRST_DAY + timedelta(days=number) for number in range(67)}
    # Files that were written before the upgrade do not have its columns.
    upgraded = [row for row in days if dict(row).get("rain_inches") is not None]
    assert 0 < len(upgraded) < len(days)
