"""Checkpoints of every Spark version with one damaged file: doctor and inspect report, whatever the file has."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from slackwater.cli.main import main
from tests.diagnose.random_damage import damage
from tests.support.corpus import VERSIONS, corpus_case, corpus_cases

SEEDS = 20
ENDS = {"doctor": (0, 1, 5), "inspect": (0, 3)}


def reported(
    version: str, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[str, dict[str, int], str]:
    """What was damaged, the exit code of each command, and what was printed as errors."""
    dice = random.Random(f"{version} {seed}")
    case = corpus_case(version, dice.choice(corpus_cases(version)), folder)
    done = f"seed {seed}: {case.name}: {damage(case / 'checkpoint', dice)}"
    codes, errors = {}, ""
    for verb in ENDS:
        codes[verb] = main([verb, str(case / "checkpoint"), "--format", "json"])
        printed = capsys.readouterr()
        json.loads(printed.out)
        errors += printed.err
    return done, codes, errors


@pytest.mark.parametrize(
    "version", [*(pytest.param(one, marks=pytest.mark.thorough) for one in VERSIONS[:-1]), VERSIONS[-1]]
)
@pytest.mark.parametrize("part", [0, *(pytest.param(one, marks=pytest.mark.thorough) for one in range(1, 5))])
def test_a_damaged_file_is_reported(
    version: str, part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        done, codes, errors = reported(version, seed, tmp_path / str(seed), capsys)

        assert all(code in ENDS[verb] for verb, code in codes.items()), (done, codes, errors)
        assert "Traceback" not in errors, (done, errors)
