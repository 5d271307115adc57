"""A home that was moved or copied is recognised."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slackwater.errors import FormatError
from slackwater.home.home import Home
from slackwater.home.identity import Place, ensure_identity, place_of, read_identity, write_identity


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    ensure_identity(home)
    return home


def test_a_home_without_a_record_is_in_its_place(tmp_path: Path) -> None:
    assert place_of(Home(tmp_path)) == Place()


def test_the_identity_is_given_once(home: Home) -> None:
    identity = read_identity(home.path)
    assert identity is not None
    assert ensure_identity(home) == identity
    assert place_of(home) == Place()


def test_a_moved_home(home: Home, tmp_path: Path) -> None:
    was = str(home.path)
    moved = Home(shutil.move(home.path, tmp_path / "moved"))
    assert place_of(moved) == Place("moved", was)
    write_identity(moved, "other")
    assert place_of(moved) == Place()


def test_a_copied_home(home: Home, tmp_path: Path) -> None:
    copy = Home(shutil.copytree(home.path, tmp_path / "copy"))
    assert place_of(copy) == Place("copied", str(home.path))
    assert place_of(home) == Place()


def test_another_home_in_the_old_place_is_no_original(home: Home, tmp_path: Path) -> None:
    was = str(home.path)
    moved = Home(shutil.move(home.path, tmp_path / "moved"))
    ensure_identity(Home(was))
    assert place_of(moved) == Place("moved", was)


def test_a_home_behind_a_symlink_was_not_moved(home: Home, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home.path)
    assert place_of(Home(tmp_path / "link")) == Place()


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"id": "x"}'])
def test_a_damaged_record_is_an_error(home: Home, text: str) -> None:
    (home.path / "home.json").write_text(text)
    with pytest.raises(FormatError) as caught:
        place_of(home)
    assert (caught.value.code, caught.value.where) == ("home-file-damaged", str(home.path / "home.json"))
