"""What a function depends on that no value of it shows, found in the code that it runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from slackwater.runtime.program.code_reach import reach_of
from slackwater.runtime.program.function_values import Taken
from tests.runtime.function_ways import HEAD

OUTSIDE: dict[str, tuple[str, ...]] = {
    "time.time() * x": ("the clock",),
    "x * random.random() + time.time()": ("chance", "the clock"),
    "str(uuid.uuid4())": ("chance",),
    "socket.gethostbyname(x)": ("the network",),
    "open(x).read()": ("files",),
    "Path(x).read_text()": ("files",),
    "pd.read_csv(x).rows[0]": ("files",),
    "open('out.txt', 'w').write(x)": (),
    "open(Path(__file__).with_name('other.py')).read()": (),
    "helper(x)": ("the clock",),
    "x + 1": (),
}
"""What the body of a function depends on that cannot be compared."""
READS = {
    "a name": ("", "open('rates/a.csv').read()"),
    "a path of the module": ("FILE = Path(__file__).parent / 'rates' / 'a.csv'\n", "FILE.open().read()"),
    "joined": ("HERE = os.path.dirname(__file__)\n", "open(os.path.join(HERE, 'rates', 'a.csv'), 'r').read()"),
    "a text with a variable": ("HERE = os.path.dirname(__file__)\n", "open(f'{HERE}/rates/a.csv').read()"),
    "a table": ("NAME = 'rates/a.csv'\n", "pd.read_csv(NAME)"),
    "an argument around": ("", "open(given).read()"),
}


def _taken(folder: Path, body: str, before: str = "") -> Taken:
    file = folder / "outside.py"
    made = f"def made(given):\n    def scaled(x):\n        return {body}\n    return scaled\n"
    helper = "import socket\ndef helper(x): return time.time() * x\n"
    text = f"{HEAD}{before}{helper}{made}def stream(spark): return made('rates/a.csv')\n"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("outside", file)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["outside"] = module
    spec.loader.exec_module(module)
    return reach_of(module.stream).taken(module.stream(None))


@pytest.mark.parametrize("body", OUTSIDE)
def test_what_cannot_be_compared_is_named(body: str, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")
    assert tuple(sorted(_taken(tmp_path, body).outside)) == OUTSIDE[body]


@pytest.mark.parametrize("way", READS)
def test_a_file_of_the_project_is_compared_by_its_content(way: str, tmp_path: Path) -> None:
    file = tmp_path / "rates" / "a.csv"
    file.parent.mkdir()
    before, body = READS[way]

    found = []
    for text in ("1", "1", "2"):
        file.write_text(text)
        taken = _taken(tmp_path, body, before)
        assert not taken.outside
        found.append(taken.values["file rates/a.csv"])

    assert found[0] == found[1] != found[2]


def test_a_file_that_is_written_or_not_of_the_project_is_none(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("1")
    project = tmp_path / "project"
    project.mkdir()
    (project / "out.txt").write_text("1")

    assert not _taken(project, "open('out.txt', mode='a').write(x)").values
    taken = _taken(project, f"open({str(other)!r}).read()")
    assert (dict(taken.values), set(taken.outside)) == ({}, {"files"})
