"""Check that the locks match pyproject.toml, from the files alone, without a network.

For each Python the project supports, on Linux: every requirement has exactly one pin that fits it, every pin has a
hash, the development lock holds the runtime lock at the same versions, and no address or path of a machine has crept
in.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
RUNTIME_EXTRAS = ("spark", "kafka", "s3", "demo")
ADDRESS = re.compile(r"://|--(extra-)?index|--find-links|(^|\s)/\w|file:")


class Pin(NamedTuple):
    requirement: Requirement
    hashes: int

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return next(iter(self.requirement.specifier)).version


def read_pins(lock: Path) -> list[Pin]:
    logical_lines = lock.read_text().replace("\\\n", " ").splitlines()
    return [
        Pin(Requirement(line.split("--hash", 1)[0].strip()), line.count("--hash=sha256:"))
        for line in logical_lines
        if line.strip() and not line.lstrip().startswith("#")
    ]


def read_inputs(path: Path) -> list[Requirement]:
    return [Requirement(line) for line in path.read_text().splitlines() if line and not line.startswith("#")]


def applies(requirement: Requirement, python: str) -> bool:
    if requirement.marker is None:
        return True
    environment = {name: str(value) for name, value in default_environment().items()}
    environment |= {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "extra": "",
    }
    return requirement.marker.evaluate(environment)


def unmet(required: list[Requirement], pins: list[Pin], python: str) -> Iterator[str]:
    """Requirements that no pin fits, or that two pins claim, for one Python version."""
    active = [pin for pin in pins if applies(pin.requirement, python)]
    for requirement in required:
        if not applies(requirement, python):
            continue
        versions = [pin.version for pin in active if pin.name == canonicalize_name(requirement.name)]
        if len(versions) != 1 or not requirement.specifier.contains(versions[0], prereleases=True):
            yield f"Python {python}: {requirement} is locked as {versions or 'nothing'}"


def lock_problems(lock: Path, required: list[Requirement]) -> Iterator[str]:
    if not lock.is_file():
        yield "is missing"
        return
    pins = read_pins(lock)
    yield from (f"{pin.requirement.name} has no hash" for pin in pins if not pin.hashes)
    yield from (f"names a place: {line}" for line in lock.read_text().splitlines() if ADDRESS.search(line))
    for python in PYTHONS:
        yield from unmet(required, pins, python)


def inner_lock_problems(inner: Path, outer: Path) -> Iterator[str]:
    """Pins of the inner lock that the outer one lacks or has at another version."""
    held = {(pin.name, pin.version) for pin in read_pins(outer)}
    for pin in read_pins(inner):
        if (pin.name, pin.version) not in held:
            yield f"{pin.name}=={pin.version} of {inner.name} is not in it"


def _spark_of(lock: Path) -> Requirement:
    """What ``spark-<version>.txt`` is made from."""
    return Requirement(f"pyspark=={lock.stem.removeprefix('spark-')}")


def problems() -> Iterator[str]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = document["project"]
    # `all` names the other extras.
    extras: dict[str, list[str]] = {**project["optional-dependencies"], "all": document["dependency-groups"]["dev"]}
    core = [Requirement(text) for text in project["dependencies"]]
    held_back = read_inputs(ROOT / "requirements/pins.in")
    wanted = {
        "build.txt": read_inputs(ROOT / "requirements/build.in"),
        "runtime.txt": core + held_back + [Requirement(text) for name in RUNTIME_EXTRAS for text in extras[name]],
        **{lock.name: [_spark_of(lock)] for lock in (ROOT / "requirements").glob("spark-*.txt")},
        "dev.txt": core + held_back + [Requirement(text) for texts in extras.values() for text in texts],
    }
    for name, required in wanted.items():
        for problem in lock_problems(ROOT / "requirements" / name, required):
            yield f"requirements/{name}: {problem}"
    for problem in inner_lock_problems(ROOT / "requirements/runtime.txt", ROOT / "requirements/dev.txt"):
        yield f"requirements/dev.txt: {problem}"


def main() -> int:
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print("hint: scripts/lock", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
