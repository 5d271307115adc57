"""Nothing that git keeps names a place of one machine, or the address of a package registry."""

import re
from pathlib import Path

# Put together here, so that this file does not hold what it looks for.
PLACES = ("/" + "work/", "/" + "root/", "/" + "opt/wheels", "pyenv/" + "versions")
HOSTS = (
    "pypi" + r"\.org",
    "pythonhosted" + r"\.org",
    "repo1?" + r"\.maven",
    "maven" + r"\.org",
    "registry" + r"\.npmjs",
    "static\\.crates" + r"\.io",
    "deb" + r"\.debian\.org",
    "index" + "-url",
    "find" + r"-links\s*=?\s*/",
)
FORBIDDEN = re.compile("|".join((*PLACES, *HOSTS)))
# The one script that makes uv leave addresses out has to name the options.
MAY_NAME_OPTIONS = {"scripts/lock"}


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except UnicodeDecodeError:
        return []  # a golden checkpoint; what Spark wrote is read by the tests that use it


def test_no_tracked_file_names_a_place_of_one_machine(root: Path, tracked_files: list[Path]) -> None:
    found = [
        f"{file.relative_to(root)}:{number}: {line.strip()[:120]}"
        for file in tracked_files
        if str(file.relative_to(root)) not in MAY_NAME_OPTIONS
        for number, line in enumerate(_lines(file), 1)
        if FORBIDDEN.search(line)
    ]
    assert found == []


def test_the_pattern_finds_what_it_is_for() -> None:
    assert FORBIDDEN.search("see /" + "work/main")
    assert FORBIDDEN.search("https://repo1" + ".mav" + "en.org/maven2")
    assert not FORBIDDEN.search("a framework/root package")
