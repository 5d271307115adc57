"""A home that was moved or copied is recognised."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.core.errors import FormatError
from slackwater.ledger.home import HERE, Home, ensure_identity, place_of, read_identity, shared_path, write_identity
from tests.support.errors import raises_code


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    ensure_identity(home)
    return home


def test_a_home_without_a_record_is_in_its_place(tmp_path: Path) -> None:
    assert place_of(Home(tmp_path)) == HERE


def test_the_identity_is_given_once(home: Home) -> None:
    identity = read_identity(home.location)
    assert identity is not None
    assert (ensure_identity(home), read_identity(home.location)) == (identity[0], identity)
    assert place_of(home) == HERE


def test_a_moved_home(home: Home, tmp_path: Path) -> None:
    was = str(home.location)
    moved = Home(shutil.move(home.location, tmp_path / "moved"))
    assert place_of(moved) == ("moved", was)
    write_identity(moved, "other")
    assert place_of(moved) == HERE


def test_a_copied_home(home: Home, tmp_path: Path) -> None:
    copy = Home(shutil.copytree(home.location, tmp_path / "copy"))
    assert place_of(copy) == ("copied", str(home.location))
    assert place_of(home) == HERE


@pytest.mark.parametrize("linked", ["ledger.db", "streams/p/s/operations/1/journal.jsonl"])
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_copy_with_a_linked_file(tmp_path: Path, linked: str, link: Callable[[Path, Path], None]) -> None:
    home = _filled(tmp_path / "home")
    copy = Path(shutil.copytree(home, tmp_path / "copy"))
    assert shared_path(copy, home) is None
    (copy / linked).unlink()
    link(home / linked, copy / linked)
    assert shared_path(copy, home) == copy / linked


@pytest.mark.parametrize("linked", ["streams", "streams/p", "streams/p/s", "streams/p/s/checkpoints"])
def test_a_copy_with_a_linked_folder(tmp_path: Path, linked: str) -> None:
    """As where the folder is on another disk: a copy that keeps symbolic links has the same."""
    home = _filled(tmp_path / "home")
    (tmp_path / "disk").mkdir()
    shutil.move(home / linked, tmp_path / "disk" / "folder")
    (home / linked).symlink_to(tmp_path / "disk" / "folder")
    copy = Path(shutil.copytree(home, tmp_path / "copy", symlinks=True))
    assert shared_path(copy, home) is not None
    whole = Path(shutil.copytree(home, tmp_path / "whole"))
    assert shared_path(whole, home) is None


def _filled(home: Path) -> Path:
    for name in ("ledger.db", "streams/p/s/stream.json", "streams/p/s/operations/1/journal.jsonl"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    (home / "streams/p/s/checkpoints/0001").mkdir(parents=True)
    return home


def test_another_home_in_the_old_place_is_no_original(home: Home, tmp_path: Path) -> None:
    was = str(home.location)
    moved = Home(shutil.move(home.location, tmp_path / "moved"))
    ensure_identity(Home(was))
    assert place_of(moved) == ("moved", was)


def test_a_home_behind_a_symlink_was_not_moved(home: Home, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home.location)
    assert place_of(Home(tmp_path / "link")) == HERE


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"id": "x"}'])
def test_a_damaged_record_is_an_error(home: Home, text: str) -> None:
    Path(home.location / "home.json").write_text(text)
    with raises_code(FormatError, "home-file-damaged", where=str(home.location / "home.json")):
        place_of(home)
