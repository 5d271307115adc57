"""The digest of what a stream's function reaches: equal after a harmless edit, different where rows may differ."""

from __future__ import annotations

import importlib.util
import keyword
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from slackwater.runtime.loader import digest
from slackwater.runtime.program.code_reach import CodeReach, reach_of
from slackwater.runtime.program.code_scopes import imported_files

HELPERS = '''
"""Helpers."""
import logging

log = logging.getLogger(__name__)
LEAST = 3
NAMES = {"a": 1, "b": [2, 3]}


def wide(rows):
    """Documented."""
    return rows.filter("n > 1")


def narrow(rows):
    kept = wide(rows)
    return kept.filter(kept.n > LEAST)


class Base:
    limit = 5


class Rules(Base):
    def __init__(self, least):
        self.least = least

    def kept(self, rows):
        return rows.filter(rows.n > self.least + self.limit)
'''
PIPELINE = """
import functools
import os

import helpers
from helpers import narrow as filtered
from pyspark.sql import functions as F

RULES = helpers.Rules(4)
ONLY = functools.partial(filtered)
double = lambda n: n * 2


def adder(amount):
    def add(n):
        return n + amount
    return add


plus = adder(1)


def twice(function):
    @functools.wraps(function)
    def wrapper(*given):
        return function(*given)
    return wrapper


@twice
def decorated(n, by=helpers.LEAST):
    return n * by


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def unused(n):
    return n


def stream(spark):
    from helpers import NAMES

    offset = 10

    @F.udf("long")
    def shifted(n):
        return n + offset

    rows = RULES.kept(ONLY(spark.readStream.load("in")))
    values = [double(value) for value in NAMES["b"]]
    return rows.select(F.col("n"), shifted("n"), plus(1), decorated(2), even(4), *values)
"""
BASE = {"pipeline.py": PIPELINE, "helpers.py": HELPERS}
Edit = tuple[str, str, str]
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "local renamed": (
        ("helpers.py", "kept = wide(rows)\n    return kept.filter(kept.n", "k = wide(rows)\n    return k.filter(k.n"),
    ),
    "parameter renamed": (
        ("helpers.py", "def wide(rows):", "def wide(frame):"),
        ("helpers.py", 'rows.filter("n > 1")', 'frame.filter("n > 1")'),
    ),
    "captured local renamed": (("pipeline.py", "offset", "shift_by"),),
    "docstring": (("helpers.py", '"""Documented."""', '"""Says something else."""'),),
    "docstring removed": (("helpers.py", '    """Documented."""\n', ""),),
    "comment": (("helpers.py", "def wide", "# new\ndef wide"),),
    "blank lines": (("pipeline.py", "    offset = 10", "\n\n    offset = 10"),),
    "annotations": (("helpers.py", "def wide(rows):", 'def wide(rows: "DataFrame") -> "DataFrame":'),),
    "annotated local": (("pipeline.py", "offset = 10", "offset: int = 10"),),
    "formatting": (
        (
            "pipeline.py",
            'RULES.kept(ONLY(spark.readStream.load("in")))',
            "RULES.kept(\n  ONLY(spark.readStream.load('in'))\n    )",
        ),
    ),
    "print": (("helpers.py", "    kept = wide", '    print("filtering", LEAST)\n    kept = wide'),),
    "log line": (("helpers.py", "    kept = wide", '    log.info("filtering %s", LEAST)\n    kept = wide'),),
    "log line under a condition": (
        ("helpers.py", "    kept = wide", '    if LEAST > 2:\n        log.debug("few")\n    kept = wide'),
    ),
    "helpers reordered": (("helpers.py", "def wide", "def unused2():\n    return 1\n\n\ndef wide"),),
    "unused changed": (("pipeline.py", "def unused(n):\n    return n", "def unused(n):\n    return n + 1"),),
    "unused constant": (("helpers.py", "LEAST = 3", "LEAST = 3\nMOST = 9"),),
    "unused import": (("pipeline.py", "import os\n", "import os\nimport json\n"),),
    "helper renamed": (("helpers.py", "wide", "widest"),),
    "constant renamed": (("helpers.py", "LEAST", "FEWEST"), ("pipeline.py", "LEAST", "FEWEST")),
    "constant written otherwise": (("helpers.py", "LEAST = 3", "LEAST = 1 + 2"),),
    "import in the function moved up": (
        ("pipeline.py", "    from helpers import NAMES\n", ""),
        ("pipeline.py", "import helpers\n", "import helpers\nfrom helpers import NAMES\n"),
    ),
    "other alias": (
        ("pipeline.py", "narrow as filtered", "narrow"),
        ("pipeline.py", "partial(filtered)", "partial(narrow)"),
    ),
    "by module instead of from": (("pipeline.py", "partial(filtered)", "partial(helpers.narrow)"),),
    "star import": (
        ("pipeline.py", "from helpers import narrow as filtered", "from helpers import *"),
        ("pipeline.py", "partial(filtered)", "partial(narrow)"),
    ),
    "functions of Spark by another path": (
        ("pipeline.py", "from pyspark.sql import functions as F", "import pyspark.sql.functions as F"),
    ),
    "getattr": (("pipeline.py", "partial(filtered)", 'partial(getattr(helpers, "narrow"))'),),
    "another module name": (("pipeline.py", "helpers", "tools"),),
    "into a package": (
        (
            "pipeline.py",
            "import helpers\nfrom helpers import narrow as filtered",
            "from shared import helpers\nfrom shared.helpers import narrow as filtered",
        ),
        ("pipeline.py", "    from helpers", "    from shared.helpers"),
    ),
    "pass and global": (("pipeline.py", "    offset = 10", "    pass\n    offset = 10"),),
    "class documented": (("helpers.py", "class Rules(Base):", 'class Rules(Base):\n    """Rules."""'),),
}
CHANGES: dict[str, tuple[Edit, ...]] = {
    "constant": (("helpers.py", "LEAST = 3", "LEAST = 4"),),
    "type of a constant": (("helpers.py", "LEAST = 3", "LEAST = 3.0"),),
    "string in a helper's helper": (("helpers.py", "n > 1", "n > 2"),),
    "element of a collection": (("helpers.py", "[2, 3]", "[2, 4]"),),
    "key of a collection": (("helpers.py", '"a": 1', '"c": 1'),),
    "changed in place": (("helpers.py", "def wide", 'NAMES["b"].append(9)\n\n\ndef wide'),),
    "class attribute": (("helpers.py", "limit = 5", "limit = 6"),),
    "base class": (("helpers.py", "class Rules(Base):", "class Rules:\n    limit = 6\n"),),
    "method": (("helpers.py", "self.least + self.limit", "self.least - self.limit"),),
    "operator": (("helpers.py", "kept.n > LEAST", "kept.n >= LEAST"),),
    "argument of an instance": (("pipeline.py", "Rules(4)", "Rules(5)"),),
    "partial of another function": (("pipeline.py", "partial(filtered)", "partial(helpers.wide)"),),
    "argument of a partial": (("pipeline.py", "partial(filtered)", "partial(filtered, 1)"),),
    "alias of another function": (("pipeline.py", "import narrow as filtered", "import wide as filtered"),),
    "lambda": (("pipeline.py", "n * 2", "n * 3"),),
    "closure": (("pipeline.py", "adder(1)", "adder(2)"),),
    "function of a closure": (("pipeline.py", "n + amount", "n - amount"),),
    "captured local": (("pipeline.py", "offset = 10", "offset = 11"),),
    "default argument": (("pipeline.py", "by=helpers.LEAST", "by=2"),),
    "decorator": (("pipeline.py", "return function(*given)", "return function(*given) + 1"),),
    "decorator removed": (("pipeline.py", "@twice\n", ""),),
    "mutual recursion": (("pipeline.py", "n != 0 and", "n != 1 and"),),
    "order of arguments": (("pipeline.py", "plus(1), decorated(2)", "decorated(2), plus(1)"),),
    "two locals swapped": (("pipeline.py", "return n == 0 or odd(n - 1)", "return odd(n - 1) or n == 0"),),
    "type of a UDF": (("pipeline.py", 'F.udf("long")', 'F.udf("int")'),),
    "function of Spark": (("pipeline.py", 'F.col("n")', 'F.lit("n")'),),
    "a call in a log line": (("helpers.py", "    kept = wide", "    print(NAMES.pop('a'))\n    kept = wide"),),
    "local used for another": (("helpers.py", "return kept.filter(kept.n", "return rows.filter(kept.n"),),
    "path": (("pipeline.py", 'load("in")', 'load("other")'),),
}


@contextmanager
def _imported(folder: Path) -> Iterator[ModuleType]:
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("slackwater_pipeline_test", folder / "pipeline.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))
        sys.path_importer_cache.clear()
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


def reach(folder: Path, files: dict[str, str]) -> CodeReach:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with _imported(folder) as module:
        return reach_of(module.stream)


def _edited(edits: tuple[Edit, ...], files: dict[str, str] = BASE) -> dict[str, str]:
    found = dict(files)
    for name, old, new in edits:
        assert old in found[name], f"{old!r} is not in {name}"
        found[name] = found[name].replace(old, new)
    if "from tools" in found["pipeline.py"]:
        found["tools.py"] = found.pop("helpers.py")
    if "from shared" in found["pipeline.py"]:
        found["shared/__init__.py"] = ""
        found["shared/helpers.py"] = found.pop("helpers.py")
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> CodeReach:
    return reach(tmp_path_factory.mktemp("base"), BASE)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_edit_changes_no_digest(name: str, tmp_path: Path, base: CodeReach) -> None:
    assert reach(tmp_path, _edited(HARMLESS[name])).code == base.code


@pytest.mark.parametrize("name", CHANGES)
def test_an_edit_that_may_change_rows_changes_the_digest(name: str, tmp_path: Path, base: CodeReach) -> None:
    assert reach(tmp_path, _edited(CHANGES[name])).code != base.code


UDFS = ("shifted", "even", "Rules", "add", "wide")


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        (("pipeline.py", "offset = 10", "offset = 11"), {"shifted"}),
        (("pipeline.py", "n + offset", "n - offset"), {"shifted"}),
        (("pipeline.py", "adder(1)", "adder(2)"), {"add"}),
        (("pipeline.py", "n != 0 and", "n != 1 and"), {"even"}),
        (("helpers.py", "limit = 5", "limit = 6"), {"Rules"}),
        (("helpers.py", "n > 1", "n > 2"), {"wide"}),
        (("pipeline.py", 'load("in")', 'load("other")'), set()),
    ],
)
def test_each_function_has_a_digest_of_what_it_reaches_itself(
    edit: Edit, changed: set[str], tmp_path: Path, base: CodeReach
) -> None:
    found = reach(tmp_path, _edited((edit,))).functions
    assert {name for name in UDFS if found[name] != base.functions[name]} == changed


ONE_FILE = """
import os
{top}

def stream(spark):
    {inside}
"""


def _of(folder: Path, top: str, inside: str, **others: str) -> str:
    files = {f"{name}.py": text for name, text in others.items()}
    return reach(folder, {"pipeline.py": ONE_FILE.format(top=top, inside=inside), **files}).code


def test_a_module_that_is_not_imported_yet_is_read_and_not_run(tmp_path: Path) -> None:
    inside = "@spark.udf\n    def late(n):\n        from later import most\n        return most(n)\n    return late"
    text = "raise SystemExit(1)\nMOST = {}\ndef most(n):\n    return min(n, MOST)\n"
    three = _of(tmp_path / "3", "", inside, later=text.format(3))
    assert three == _of(tmp_path / "same", "", inside, later="# moved\n" + text.format(3))
    assert three != _of(tmp_path / "4", "", inside, later=text.format(4))


def test_a_value_from_the_environment_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    for value in ("3", "4", "3"):
        monkeypatch.setenv("LEAST", value)
        found.append(_of(tmp_path / f"{len(found)}", 'LEAST = int(os.environ["LEAST"])', "return LEAST"))
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    "top",
    [
        "import time\nX = time.time()",
        "from datetime import datetime\nSTART = datetime.now()\nX = str(START)",
        "from pathlib import Path\nX = str(Path(__file__).parent / 'in')",
        "import uuid\nX = uuid.uuid4()",
        "X = object()",
        "CACHE = {}\ndef remember():\n    CACHE['at'] = os.getpid()\nremember()\nX = CACHE",
        "import itertools, threading\nX = [threading.Lock(), itertools.count()]",
    ],
)
def test_a_value_that_differs_in_each_start_changes_nothing(top: str, tmp_path: Path) -> None:
    assert _of(tmp_path / "a", top, "return X") == _of(tmp_path / "b", top, "return X")


REGISTRY = """
HANDLERS = {}
def handler(name):
    def register(function):
        HANDLERS[name] = function
        return function
    return register
@handler("a")
def first(n):
    return n + 1
@handler("b")
def second(n):
    return n + 2
"""
SWITCHED = """
try:
    import tomllib as reader
except ImportError:
    import json as reader
if os.name == "posix":
    def root(n): return n + 1
else:
    def root(n): return n - 1
"""
PATTERNS = """
import dataclasses
@dataclasses.dataclass
class Point:
    x: int = 1
def kind(value):
    match value:
        case {"a": found, **rest}:
            return found, rest
        case [Point(x=only), *_] if (double := only * 2):
            return double
        case _:
            return None
"""


@pytest.mark.parametrize(
    ("top", "inside", "old", "new"),
    [
        (REGISTRY, "return HANDLERS[str(spark)]", "n + 2", "n + 3"),
        (REGISTRY, "return HANDLERS[str(spark)]", 'handler("b")', 'handler("c")'),
        (SWITCHED, "return root(spark)", "n - 1", "n - 2"),
        (PATTERNS, "return kind(spark)", '"a": found', '"b": found'),
        (PATTERNS, "return kind(spark)", "only * 2", "only * 3"),
        (PATTERNS, "return kind(spark)", "x: int = 1", "x: int = 2"),
        ("def f(n): return n\nf.extra = 1", "return f(spark)", "extra = 1", "extra = 2"),
        ("def f(n): return n\n", "return globals()[str(spark)]", "return n", "return -n"),
        ("X = [n for n in (1, 2) if n]", "return X", "(1, 2)", "(1, 3)"),
        ("A = B = 1\nX = (A, B)", "return [A for A in X if B]", "B = 1", "B = 2"),
    ],
)
def test_less_common_code(top: str, inside: str, old: str, new: str, tmp_path: Path) -> None:
    before = _of(tmp_path / "before", top, inside)
    assert before == _of(tmp_path / "again", "# a comment\n" + top, inside)
    assert before != _of(tmp_path / "after", top.replace(old, new), inside)


TREE = {
    "pipeline.py": "import os\nimport shared.text\ndef stream(spark):\n    from late import most\n    return most\n",
    "shared/__init__.py": "from . import numbers_\n",
    "shared/text.py": "from pyspark.sql import functions as F\n",
    "shared/numbers_.py": "raise SystemExit(1)\n",
    "late.py": "import slackwater\nimport pipeline\n",
    "unrelated.py": "",
}


def test_the_files_of_a_pipeline_are_found_without_running_any(tmp_path: Path) -> None:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    pipeline = tmp_path / "pipeline.py"
    found = {path.relative_to(tmp_path).as_posix() for path in imported_files(pipeline)}
    assert found == TREE.keys() - {"pipeline.py", "unrelated.py"}

    before = digest(str(pipeline))
    (tmp_path / "unrelated.py").write_text("X = 1\n")
    assert digest(str(pipeline)) == before
    (tmp_path / "shared" / "numbers_.py").write_text("X = 1\n")
    assert digest(str(pipeline)) != before


def test_a_file_alone_has_its_own_digest(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text("import json\n")
    assert digest(str(tmp_path / "pipeline.py")) == sha256(b"import json\n").hexdigest()


NAMES = st.text("abcdefghij", min_size=2, max_size=6).filter(lambda name: not keyword.iskeyword(name))


@settings(max_examples=25, deadline=None)
@given(first=NAMES, second=NAMES, number=st.integers(0, 50), comment=st.text("abc #'\"", max_size=9))
def test_names_and_comments_never_count_and_numbers_always_do(
    first: str, second: str, number: int, comment: str
) -> None:
    def of(one: str, other: str, value: int, note: str = "") -> str:
        code = f"{one} = {value}  # {note}\ndef {other}(n, m):\n    kept = n + {one}\n    return [m for m in kept]\n"
        inside = f"return {other}"
        with TemporaryDirectory() as folder:
            return _of(Path(folder), code, inside)

    assume(first != second and not {first, second} & {"n", "m", "kept", "os", "stream"})
    assert of(first, second, number, comment) == of("constant", "helper", number)
    assert of(first, second, number) != of(first, second, number + 1)
