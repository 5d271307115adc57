"""In CI a skip is a failure; elsewhere it is a skip. An expected failure is neither."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.changed_tests import Imports
from tests.conftest import LONGEST_FIRST

SKIPPED = {
    "test": "import pytest\n@pytest.mark.skip(reason='no broker')\ndef test_it(): pass\n",
    "inside": "import pytest\ndef test_it(): pytest.skip('no broker')\n",
    "module": "import pytest\npytest.importorskip('no_such_package')\ndef test_it(): pass\n",
}
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_it(): assert False\n"


def _exit_code(folder: Path, root: Path, text: str, *, in_ci: bool) -> int:
    shutil.copy(root / "tests/conftest.py", folder)
    (folder / "test_one.py").write_text(text)
    environment = os.environ | {"CI": "true" if in_ci else ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("text", SKIPPED.values(), ids=SKIPPED)
def test_a_skip_fails_in_ci(tmp_path: Path, root: Path, text: str) -> None:
    assert _exit_code(tmp_path, root, text, in_ci=True) in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}


@pytest.mark.parametrize("text", [SKIPPED["test"], SKIPPED["inside"], EXPECTED_FAILURE])
def test_elsewhere_it_does_not(tmp_path: Path, root: Path, text: str) -> None:
    assert _exit_code(tmp_path, root, text, in_ci=False) == pytest.ExitCode.OK


def test_an_expected_failure_is_no_skip(tmp_path: Path, root: Path) -> None:
    assert _exit_code(tmp_path, root, EXPECTED_FAILURE, in_ci=True) == pytest.ExitCode.OK


# Side by side, the tests that take longest start first.


def test_the_files_exist(root: Path) -> None:
    assert [name for name in LONGEST_FIRST if not (root / "tests" / name).is_file()] == []


# Which tests a change reaches.


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
