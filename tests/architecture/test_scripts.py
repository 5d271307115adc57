"""Which tests a change reaches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.changed_tests import Imports

MAKES_REGISTRY = re.compile(r"^from slackwater\.core\.registry import .*\bRegistry\b", re.MULTILINE)
MODULES = {
    "src/house/__init__.py": "",
    "src/house/leaf.py": "",
    "src/house/middle.py": "def late():\n    from house import leaf\n",
    "src/house/kinds/one.py": "",
    "src/house/families.py": """
KINDS: Registry[object] = Registry("house.kinds", {"one": "house.kinds.one:KIND", "two": "house.kinds.two:KIND"})
""",
    "src/house/verb.py": "from house.families import KINDS",
    "src/house/helper.py": "",
    "src/house/kinds/two.py": "from house.helper import HELP",
    "src/house/areas.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from house.leaf import Leaf
KINDS = Registry("house.areas", {"three": "house.areas_of.north:KIND"})
LATE = "house.late:NAME"
""",
    "src/house/areas_of/north/three.py": "",
    "src/house/late.py": "",
    "src/house/own/__init__.py": 'KINDS = Registry("house.own", {"four": "house.own.four:KIND"})',
    "src/house/own/four.py": "",
    "tests/test_leaf.py": "import house.leaf",
    "tests/test_middle.py": "from house.middle import late",
    "tests/test_kinds.py": "from house import families",
    "tests/test_verb.py": "from house import verb",
    "tests/test_other.py": "import house",
    "tests/test_areas.py": "from house.areas import KINDS",
    "tests/test_own.py": "from house.own import KINDS",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/house/leaf.py", ["leaf", "middle"]),
        ("src/house/kinds/one.py", ["kinds"]),
        ("src/house/helper.py", ["kinds"]),
        ("src/house/areas_of/north/three.py", ["areas"]),
        ("src/house/own/four.py", ["own"]),
        ("src/house/late.py", ["areas"]),
        ("src/house/verb.py", ["verb"]),
        ("tests/test_other.py", ["other"]),
        ("README.md", []),
    ],
)
def test_a_change_reaches_what_imports_it_and_for_a_kind_the_tests_of_its_family(
    tmp_path: Path, changed: str, expected: list[str]
) -> None:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    reached = Imports.of(tmp_path).reached([tmp_path / changed])

    assert [file.stem.removeprefix("test_") for file in reached] == expected


def test_every_kind_of_every_registry_reaches_a_test(root: Path, source_files: list[Path]) -> None:
    imports = Imports.of(root)
    makers = {file for file in source_files if MAKES_REGISTRY.search(file.read_text())}
    assert {imports.modules[name] for name, packages in imports.families.items() if packages} == makers

    assert [name for name, file in imports.kinds().items() if not imports.reached([file])] == []
