"""The scripts that read the code: which tests a change reaches, and the figures."""

from __future__ import annotations

from pathlib import Path

from scripts.changed_tests import reached
from scripts.figures import figures

MODULES = {
    "src/house/__init__.py": "",
    "src/house/leaf.py": "",
    "src/house/middle.py": "def late():\n    from house import leaf\n",
    "src/house/kinds/one.py": "",
    "src/house/families.py": 'KINDS: Registry[object] = Registry("house.kinds", "KIND", "house.kinds")',
    "src/house/verb.py": "from house.families import KINDS",
    "tests/test_leaf.py": "import house.leaf",
    "tests/test_middle.py": "from house.middle import late",
    "tests/test_kinds.py": "from house import families",
    "tests/test_verb.py": "from house import verb",
    "tests/test_other.py": "import house",
}


def test_a_change_reaches_what_imports_it_and_for_a_kind_the_tests_of_its_family(tmp_path: Path) -> None:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def names(changed: str) -> list[str]:
        return [file.stem.removeprefix("test_") for file in reached(tmp_path, [tmp_path / changed])]

    assert names("src/house/leaf.py") == ["leaf", "middle"]
    assert names("src/house/kinds/one.py") == ["kinds"]
    assert names("src/house/verb.py") == ["verb"]
    assert names("tests/test_other.py") == ["other"]
    assert names("README.md") == []


def test_figures_are_those_of_the_package() -> None:
    module = "import a  # noqa: PLC0415\n# why\n\ndef f():\n    return 1\n"
    found = figures(
        {
            "src/slackwater/a.py": module,
            "src/slackwater/b.py": module,
            "tests/architecture/test_extension_goal.py": "",
        }
    )
    assert found["lines of src/slackwater"] == "10"
    assert (found["noqa"], found["comment lines per hundred"]) == ("2", "20.0")
    assert (found["function lines: longest"], found["added by one file (tested)"]) == ("2", "goal")
