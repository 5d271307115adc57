"""Edits of what a function uses in ways that its own text does not show: data files, registries, keyword arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "top",
    [
        'USED = str(HERE / "data.txt")',
        "USED = HERE.name",
        'USED = [str(HERE), "a"]',
    ],
)
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
