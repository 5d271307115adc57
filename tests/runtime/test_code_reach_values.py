"""Edits of what a function uses in ways that its own text does not show: data files, registries, keyword arguments."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest

from slackwater.runtime.loader import digest
from slackwater.runtime.program.code_reach import reach_of, reach_of_file
from slackwater.runtime.program.code_scopes import imported_files, read_source
from slackwater.runtime.program.function_values import Taken
from slackwater.runtime.session.session import module_path, send_modules
from tests.runtime.function_ways import HEAD
from tests.runtime.test_code_reach import reach

HERE = "import json\nfrom pathlib import Path\nHERE = Path(__file__).parent\n"
REGISTERS = """import functools

@functools.singledispatch
def size(value):
    return 0

@size.register
def _(value: int):
    return value{}
"""
DERIVED = """class Rule:
    ALL = []

    def __init_subclass__(cls):
        Rule.ALL.append(cls)

class Least(Rule):
    def kept(self, n):
        return n > {}
"""
CHANGES: dict[str, tuple[str, str, str]] = {
    "a data file that is read at the import": (HERE + 'USED = json.loads((HERE / "data.txt").read_text())', "1", "2"),
    "a text that is read at the import": (HERE + 'USED = (HERE / "data.txt").read_text()', '"a"', '"b"'),
    "fields of a named tuple": ("from collections import namedtuple\nUSED = namedtuple('K', '{}')(1, 2)", "a b", "b a"),
    "fields of a typed tuple": (
        "import typing\nclass K(typing.NamedTuple):\n    {}: int\n    {}2: int\nUSED = K(1, 2)",
        "a",
        "b",
    ),
    "the default of a dictionary": (
        "from collections import defaultdict\nUSED = defaultdict({})",
        "lambda: 1",
        "lambda: 2",
    ),
    "a dictionary of a class of its own": (
        "class K(dict):\n    def least(self):\n        return {}\nUSED = K(a=1)",
        "1",
        "2",
    ),
    "a counter for a dictionary": ("from collections import Counter\nUSED = {}(a=1)", "dict", "Counter"),
    "a function that registers itself": (REGISTERS + "\nUSED = 1", " * 1", " * 2"),
    "a class that is kept by its base": (DERIVED + "\nUSED = 1", "1", "2"),
    "setattr": ("class K:\n    pass\nsetattr(K, 'least', {})\nUSED = K", "1", "2"),
    "a parameter for another, by its name": ("def USED({}):\n    return {}\nUSED2 = 1", "a, b", "b, a"),
}
USES = {
    "a function that registers itself": "size(n)",
    "a class that is kept by its base": "Rule.ALL[0]().kept(n)",
    "a parameter for another, by its name": "USED(a=n, b=1)",
}
HARMLESS: dict[str, tuple[str, str, str]] = {
    "a log line of a logger by another name": (
        "import logging\nL = logging.getLogger('a')\nUSED = 1\ndef note(n):\n    L.info('{}')",
        "one",
        "other",
    ),
    "a parameter with the calls that name it": ("def USED({0}, other):\n    return {0} - other", "a", "b"),
    "a data file that is not used": (HERE + 'OTHER = json.loads((HERE / "data.txt").read_text())\nUSED = 1', "1", "2"),
}
HARMLESS_USES = {
    "a log line of a logger by another name": ("note(n)", "note(n)"),
    "a parameter with the calls that name it": ("USED(a=n, other=1)", "USED(b=n, other=1)"),
}


def _digest(folder: Path, top: str, part: str, use: str) -> str:
    folder.mkdir()
    (folder / "data.txt").write_text(part)
    text = top if "data.txt" in top else top.format(*(part,) * top.count("{"))
    text += f"\n\ndef stream(spark):\n    def used(n):\n        return {use}\n    return used\n"
    return reach(folder, {"pipeline.py": text}).code


@pytest.mark.parametrize("name", CHANGES)
def test_an_edit_that_may_change_rows_changes_the_digest(name: str, tmp_path: Path) -> None:
    top, before, after = CHANGES[name]
    use = USES.get(name, "USED")
    first = _digest(tmp_path / "before", top, before, use)
    assert first == _digest(tmp_path / "again", top, before, use)
    assert first != _digest(tmp_path / "after", top, after, use)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_edit_changes_no_digest(name: str, tmp_path: Path) -> None:
    top, before, after = HARMLESS[name]
    uses = HARMLESS_USES.get(name, ("USED", "USED"))
    assert _digest(tmp_path / "before", top, before, uses[0]) == _digest(tmp_path / "after", top, after, uses[1])


@pytest.mark.parametrize("top", ['USED = str(HERE / "data.txt")', "USED = HERE.name", 'USED = [str(HERE), "a"]'])
def test_the_place_of_the_project_does_not_count(top: str, tmp_path: Path) -> None:
    digests = {_digest(tmp_path / name, HERE + top + "  # data.txt", "1", "USED") for name in ("one", "other")}
    assert len(digests) == 1


@pytest.mark.parametrize(
    "values",
    [
        ("lambda n: n > 1", "lambda n: n > 2"),
        ("str.upper", "str.lower"),
        ("functools.partial(max, 1)", "functools.partial(max, 2)"),
    ],
    ids=["function", "method of a library", "partial"],
)
def test_a_function_that_other_code_replaced(values: tuple[str, str], tmp_path: Path) -> None:
    found: list[str] = []
    for value in (values[0], *values):
        folder = tmp_path / str(len(found))
        top = f"import functools\nimport helpers\nhelpers.kept = {value}\n"
        pipeline = f"{top}\n\ndef stream(spark):\n    return helpers.kept\n"
        files = {"helpers.py": "def kept(n):\n    return n > 0\n", "pipeline.py": pipeline}
        found.append(reach(folder, files).code)
    assert found[0] == found[1] != found[2]


# Code of a program that is in an archive, as ``spark-submit --py-files`` hands it over: without a JVM.


PAGES = "from .least import LEAST\n\n\ndef big(visits):\n    return visits > LEAST\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    archive(tmp_path, 3)
    monkeypatch.syspath_prepend(tmp_path / "libs.zip")
    file = tmp_path / "packed_program.py"
    file.write_text("from packed_shop import pages\n\nprint(pages.big(4))\n")
    return file


def archive(folder: Path, least: int, comment: str = "") -> None:
    with ZipFile(folder / "libs.zip", "w") as opened:
        opened.writestr("packed_shop/__init__.py", "")
        opened.writestr("packed_shop/pages.py", comment + PAGES)
        opened.writestr("packed_shop/least.py", f"LEAST = {least}\n")
        opened.writestr("packed_shop/unused.py", f"LEAST = {least}\n")


def test_modules_in_an_archive_are_found_and_read(tmp_path: Path, program: Path) -> None:
    files = imported_files(program)
    names = [file.relative_to(tmp_path).as_posix() for file in files]
    assert sorted(names) == [f"libs.zip/packed_shop/{name}.py" for name in ("__init__", "least", "pages")]
    assert read_source(tmp_path / "libs.zip/packed_shop/least.py") == b"LEAST = 3\n"
    with pytest.raises(FileNotFoundError, match="absent"):
        read_source(tmp_path / "libs.zip/packed_shop/absent.py")


def test_changed_code_in_an_archive_changes_the_digests(tmp_path: Path, program: Path) -> None:
    code, meaning = digest(str(program)), reach_of_file(program)
    assert "big" in meaning.functions

    archive(tmp_path, 3, "# the same meaning\n")
    assert digest(str(program)) != code
    assert reach_of_file(program) == meaning

    archive(tmp_path, 4)
    assert digest(str(program)) != code
    assert reach_of_file(program).functions["big"] != meaning.functions["big"]


def test_what_is_no_archive_has_no_modules(tmp_path: Path, program: Path) -> None:
    (tmp_path / "libs.zip").write_text("no archive")
    assert imported_files(program) == ()


def test_workers_are_sent_no_module_of_an_archive(program: Path) -> None:
    # spark-submit has sent the archive; a part of a package in a second one would hide the rest.
    session: Any = object()
    send_modules(session, imported_files(program))


# What a function depends on that no value of it shows, found in the code that it runs.


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


# Where modules of a project are in the archive that executors import them from.


def test_a_module_is_named_as_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = tmp_path / "jobs"
    monkeypatch.setattr("sys.path", [str(jobs), str(tmp_path)])
    assert module_path(jobs / "helpers.py") == "helpers.py"
    assert module_path(jobs / "pages" / "names.py") == "pages/names.py"
    assert module_path(tmp_path / "common" / "__init__.py") == "common/__init__.py"
    monkeypatch.setattr("sys.path", [])
    assert module_path(jobs / "helpers.py") == "helpers.py"
