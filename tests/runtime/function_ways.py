"""Ways in which a Python function of a query gets a value, and edits that change no value. No Spark is needed to read.

Each is a module's text: ``column(spark)`` returns the column that the query's keys are made with. ``RATE`` stands for
a value that is computed when the module is imported or the query is built.
"""

from __future__ import annotations

from importlib.metadata import version
from textwrap import indent

from tests.runtime import data_source_ways

RATE = 'int(os.environ["RATE"])'
HEAD = """import os
import logging
import random
import threading
import time
import uuid
from collections import Counter, OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial, wraps
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import functions as F

log = logging.getLogger("ways")
"""
STREAM = """

def stream(spark):
    rows = spark.readStream.format("rate").load()
    return rows.withColumn("value", column(spark)).groupBy("value").count()
"""
SCALED = """
class Scale:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k

    def times(self, x):
        return x * self.k
"""
MAKE = """
def make(k):
    def scaled(x):
        return x * k
    return scaled
"""
BY = """
def by(k):
    def decorate(f):
        @wraps(f)
        def inner(x):
            return f(x) * k
        return inner
    return decorate
"""
OF_PANDAS = """
def stream(spark):
    rows = spark.readStream.format("rate").load()
    return rows.{call}.groupBy("value").count()
"""


def used(function: str, code: str = "", *, around: str = "", kind: str = "long") -> str:
    """A query whose column is made by ``function``, an expression, with code above it and lines around it."""
    begin = f"\n{indent(around, '    ')}\n    " if around else " "
    return f"{code}def column(spark):{begin}return F.udf({function}, '{kind}')('value')"


WAYS: dict[str, tuple[str, str]] = {
    # The text, and the name of the variable that the message has.
    "variable of a module": (used("lambda x: x * K", "K = RATE\n"), "K"),
    "variable around": (used("lambda x: x * k", around="k = RATE"), "k"),
    "argument of a function around": (used("make(RATE)", MAKE), "k"),
    "function made at the import": (used("used", MAKE + "used = make(RATE)\n"), "k"),
    "two functions around": (
        used(
            "outer(RATE)(1)", "def outer(k):\n    def inner(j):\n        return lambda x: x * k + j\n    return inner\n"
        ),
        "k",
    ),
    "file of the project": (
        used(
            "scaled",
            "FILE = Path(__file__).with_name('rate.txt')\nFILE.write_text(str(RATE))\n"
            "def scaled(x): return x * int(FILE.read_text())\n",
        ),
        "file rate.txt",
    ),
    "default": (used("scaled", "def scaled(x, k=RATE): return x * k\n"), "k"),
    "default of a keyword": (used("scaled", "def scaled(x, *, k=RATE): return x * k\n"), "k"),
    "lambda in a loop": (
        (
            "def column(spark):\n    made = [F.udf(lambda x, k=k: x * k, 'long') for k in (1, RATE)]\n"
            "    return made[0]('value') + made[1]('value')"
        ),
        "k",
    ),
    "lambdas in another order": (
        (
            "def column(spark):\n    made = [F.udf(lambda x, k=k: x * k, 'long') for k in (RATE, 5 - RATE)]\n"
            "    return made[0]('value') - made[1](F.col('value') + 1)"
        ),
        "k",
    ),
    "partial": (used("partial(scaled, RATE)", "def scaled(k, x): return x * k\n"), "k"),
    "keyword of a partial": (used("partial(scaled, k=RATE)", "def scaled(x, k): return x * k\n"), "k"),
    "function of a partial": (
        used(
            "partial(up if RATE > 2 else down, by=1)", "def up(x, by): return x + by\ndef down(x, by): return x - by\n"
        ),
        "function",
    ),
    "callable object": (used("Scale(RATE)", SCALED), "k"),
    "bound method": (used("Scale(RATE).times", SCALED), "k"),
    "object of a module": (used("lambda x: x * scale.k", SCALED + "scale = Scale(RATE)\n"), "scale.k"),
    "method of an object of a module": (
        used("scaled", SCALED + "scale = Scale(RATE)\ndef scaled(x): return scale.times(x)\n"),
        "scale.k",
    ),
    "object around": (used("lambda x: scale(x)", SCALED, around="scale = Scale(RATE)"), "scale.k"),
    "object in an object": (
        used(
            "Outer(Scale(RATE))",
            SCALED + "class Outer:\n    def __init__(self, inner): self.inner = inner\n"
            "    def __call__(self, x): return self.inner(x)\n",
        ),
        "inner.k",
    ),
    "object with slots": (
        used(
            "Scale(RATE)",
            "class Scale:\n    __slots__ = ('k',)\n    def __init__(self, k): self.k = k\n"
            "    def __call__(self, x): return x * self.k\n",
        ),
        "k",
    ),
    "object of a derived class": (
        used(
            "Twice(RATE)", SCALED + "class Twice(Scale):\n    def __call__(self, x): return 2 * super().__call__(x)\n"
        ),
        "k",
    ),
    "attribute of a class": (
        used("Scale().times", "class Scale:\n    K = RATE\n    def times(self, x): return x * self.K\n"),
        "K",
    ),
    "attribute of a base class": (
        used(
            "Scale().times",
            "class Base:\n    K = RATE\nclass Scale(Base):\n    def times(self, x): return x * self.K\n",
        ),
        "K",
    ),
    "attribute of a class by its name": (used("lambda x: x * Scale.K", "class Scale:\n    K = RATE\n"), "Scale.K"),
    "class method": (
        used("Scale.times", "class Scale:\n    K = RATE\n    @classmethod\n    def times(cls, x): return x * cls.K\n"),
        "K",
    ),
    "method that reads a module": (
        used("Scale()", "K = Counter(a=RATE)\nclass Scale:\n    def __call__(self, x): return x * K['a']\n"),
        "K",
    ),
    "data class": (
        used("lambda x: x * rates.k", "@dataclass\nclass Rates:\n    k: int = 1\n", around="rates = Rates(RATE)"),
        "rates.k",
    ),
    "named tuple": (
        used("lambda x: x * rates.k", "Rates = namedtuple('Rates', 'k')\n", around="rates = Rates(RATE)"),
        "rates",
    ),
    "enumeration": (
        used("lambda x: x * mode.value", "class Mode(Enum):\n    ONE = 2\n    TWO = 3\n", around="mode = Mode(RATE)"),
        "mode",
    ),
    "decorator's argument": (used("scaled", BY + "@by(RATE)\ndef scaled(x): return x\n"), "k"),
    "decorated helper": (used("lambda x: helper(x)", BY + "@by(RATE)\ndef helper(x): return x\n"), "k"),
    "helper with a default": (used("lambda x: helper(x)", "def helper(x, k=RATE): return x * k\n"), "k"),
    "helper made around": (used("lambda x: helper(x) + 1", MAKE, around="helper = make(RATE)"), "k"),
    "cached helper": (used("lambda x: helper(x)", "k = [RATE]\n@lru_cache\ndef helper(x): return x * k[0]\n"), "k"),
    "function in a table": (used("lambda x: table['a'](x)", MAKE, around="table = {'a': make(RATE)}"), "table"),
    "attribute of a function": (used("scaled", "def scaled(x): return x * scaled.k\nscaled.k = RATE\n"), "k"),
    "broadcast variable": (
        used("lambda x: x * b.value['a']", around="b = spark.sparkContext.broadcast({'a': RATE})"),
        "b",
    ),
    "registered for SQL": (
        (
            "def column(spark):\n    k = RATE\n    spark.udf.register('scaled', lambda x: x * k, 'long')\n"
            "    return F.expr('scaled(value)')"
        ),
        "k",
    ),
    "vectorised": (
        (
            "def column(spark):\n    k = RATE\n    @F.pandas_udf('long')\n    def scaled(x: pd.Series) -> pd.Series:\n"
            "        return x * k\n    return scaled('value')"
        ),
        "k",
    ),
    "array": (used("lambda x: x * len(k)", around="k = np.arange(RATE)"), "k"),
    "table of pandas": (used("lambda x: x * int(k.a[0])", around="k = pd.DataFrame({'a': [RATE]})"), "k"),
    "set": (used("lambda x: str(x) in k", around="k = {'a', str(RATE)}", kind="boolean"), "k"),
    "set of objects": (used("lambda x: x * len(k)", SCALED, around="k = {Scale(1), Scale(RATE)}"), "k"),
    "large table": (used("lambda x: x * k['a']", around="k = {str(n): n for n in range(200_000)} | {'a': RATE}"), "k"),
    "other module": (used("lambda x: x * other.K", "import other\n"), "K"),
    "helper of another module": (used("lambda x: helper(x)", "from other import helper\n"), "K"),
    "object of another module": (used("lambda x: scale.times(x)", "from other import scale\n"), "scale.k"),
    "class of another module": (used("Scale(RATE).times", "from other import Scale\n"), "k"),
    "in pandas": (
        "k = [RATE]\ndef each(frames):\n    for frame in frames:\n        yield frame * k[0]\n"
        + OF_PANDAS.format(call="select('value').mapInPandas(each, 'value long')"),
        "k",
    ),
    "function with state": (
        (
            MAKE
            + "used = make(RATE)\ndef each(key, frames, state): yield from (used(frame) for frame in frames)\n"
            + OF_PANDAS.format(
                call="groupBy('value').applyInPandasWithState(each, 'value long', 'n long', 'append', 'NoTimeout')"
            )
        ),
        "k",
    ),
    "values of a batch": (
        MAKE
        + "used = make(RATE)\ndef each(frame):\n    return frame.assign(value=used(frame.value))\n"
        + OF_PANDAS.format(call="groupBy('value').applyInPandas(each, 'timestamp timestamp, value long')"),
        "k",
    ),
}
if not version("pyspark").startswith("3."):
    WAYS |= {
        **data_source_ways.WAYS,
        "processor of states": (
            "from pyspark.sql.streaming import StatefulProcessor\n"
            "class Kept(StatefulProcessor):\n    def __init__(self, k): self.k = k\n    def init(self, handle): ...\n"
            "    def handleInputRows(self, key, rows, timers): yield from (row * self.k for row in rows)\n"
            "    def close(self): ...\n"
            + OF_PANDAS.format(
                call="groupBy('value').transformWithStateInPandas(Kept(RATE), 'value long', 'append', 'None')"
            ),
            "k",
        ),
        "table function": (
            (
                "@F.udtf(returnType='y long')\nclass Ten:\n    K = RATE\n    def eval(self, x): yield (x * self.K,)\n"
                "def stream(spark):\n    spark.readStream.format('rate').load().createOrReplaceTempView('rates')\n"
                "    spark.udtf.register('ten', Ten)\n"
                "    return spark.sql('SELECT y, count(*) FROM rates, LATERAL ten(value) GROUP BY y')"
            ),
            "K",
        ),
        "table function made around": (
            (
                "def made(k):\n    class Ten:\n        def eval(self, x): yield (x * k,)\n"
                "    return F.udtf(Ten, returnType='y long')\n"
                "def stream(spark):\n    spark.readStream.format('rate').load().createOrReplaceTempView('rates')\n"
                "    spark.udtf.register('ten', made(RATE))\n"
                "    return spark.sql('SELECT y, count(*) FROM rates, LATERAL ten(value) GROUP BY y')"
            ),
            "k",
        ),
    }
OTHER = f"""import os
K = {RATE}
class Scale:
    def __init__(self, k):
        self.k = k
    def times(self, x):
        return x * self.k
scale = Scale(K)
def helper(x):
    return x * K
"""


def _closure(value: str) -> str:
    """A query whose function has a value of the function around it."""
    return f"def column(spark):\n    k = {value}\n    return F.udf(lambda x: x * len(str(k)), 'long')('value')"


def _reordered(text: str) -> str:
    """A class with its last method first."""
    head, first, methods = text.partition("    def ")
    rest, last, method = (first + methods).rpartition("    def ")
    return f"{head}{last}{method.rstrip()}\n\n{rest}"


def _twice(text: str) -> tuple[str, str]:
    return text, text


HARMLESS: dict[str, tuple[str, str]] = {
    # Before and after.
    "rename of a variable around": (_closure("RATE"), _closure("RATE").replace("k", "r").replace("sparr", "spark")),
    "rename of a variable of a module": (used("lambda x: x * K", "K = RATE\n"), used("lambda x: x * R", "R = RATE\n")),
    "rename of an argument": (
        used("make(RATE)", MAKE),
        used("make(RATE)", MAKE.replace("k", "r").replace("mare", "make")),
    ),
    "rename of a default": (
        used("scaled", "def scaled(x, k=RATE): return x * k\n"),
        used("scaled", "def scaled(x, r=RATE): return x * r\n"),
    ),
    "rename of a helper": (
        used("lambda x: used(x)", MAKE + "used = make(RATE)\n"),
        used("lambda x: helper(x)", MAKE + "helper = make(RATE)\n"),
    ),
    "rename of an object's class": (
        used("lambda x: s.times(x)", SCALED, around="s = Scale(RATE)"),
        used("lambda x: s.times(x)", SCALED.replace("Scale", "Rate"), around="s = Rate(RATE)"),
    ),
    "moved lines": (_closure("RATE"), used("lambda x: x * len(str(k))", "# Why.\n\n", around="k = RATE\n\n# Now.")),
    "other order of methods": (used("Scale(RATE).times", SCALED), used("Scale(RATE).times", _reordered(SCALED))),
    "docstring and annotations": (
        used("scaled", "def scaled(x, k=RATE): return x * k\n"),
        used("scaled", "def scaled(x: int, k: int = RATE) -> int:\n    'Scales.'\n    return x * k\n"),
    ),
    "other text of a log line": (
        used("scaled", "def scaled(x):\n    log.info('a')\n    return x\n"),
        used("scaled", "def scaled(x):\n    log.info('b')\n    return x\n"),
    ),
    "text of a log line from a module": (
        used("scaled", "TEXT = 'a'\ndef scaled(x):\n    log.info(TEXT)\n    return x\n"),
        used("scaled", "TEXT = 'b'\ndef scaled(x):\n    log.info(TEXT)\n    return x\n"),
    ),
    "text of a log line from around": (
        used("scaled", around="text = 'a'\ndef scaled(x):\n    log.info(text)\n    return x"),
        used("scaled", around="text = 'b'\ndef scaled(x):\n    log.info(text)\n    return x"),
    ),
    "time that a function asks for": _twice(used("scaled", "def scaled(x): return x * time.time()\n", kind="double")),
    "time of the start": _twice(_closure("time.time()")),
    "time of the start as text": _twice(_closure("f'run {time.time()}'")),
    "time of the import": _twice(used("lambda x: x * T", "T = time.time()\n", kind="double")),
    "time of the import around": _twice(used("lambda x: k", "T = time.time()\n", around="k = str(T)", kind="string")),
    "time as a default": _twice(used("scaled", "def scaled(x, k=time.time()): return x * k\n", kind="double")),
    "time as an argument": _twice(used("make(time.time())", MAKE, kind="double")),
    "time in a partial": _twice(used("partial(scaled, time.time())", "def scaled(k, x): return k\n", kind="double")),
    "time in an object": _twice(
        used("Scale(RATE)", SCALED.replace("= k\n", "= k\n        self.began = time.time()\n", 1))
    ),
    "time given to an object": _twice(used("Scale(time.time())", SCALED)),
    "time in a data class": _twice(
        used(
            "lambda x: run.k",
            "@dataclass\nclass Run:\n    k: float = field(default_factory=time.time)\n",
            around="run = Run()",
            kind="double",
        )
    ),
    "identifier of the run": _twice(_closure("uuid.uuid4()")),
    "process": _twice(_closure("{'pid': os.getpid(), 'run': str(uuid.uuid4())}")),
    "random numbers": _twice(_closure("random.random()")),
    "generator of random numbers": _twice(_closure("random.Random()")),
    "generator of random numbers of an object": _twice(
        used("Scale(RATE)", SCALED.replace("= k\n", "= k\n        self.chance = random.Random()\n", 1))
    ),
    "generator of random numbers of numpy": _twice(_closure("np.random.default_rng()")),
    "folder of the run": _twice(
        used("lambda x: x * len(str(k))", "import tempfile\n", around="k = tempfile.mkdtemp()")
    ),
    "logger of an object": _twice(
        used("Scale(RATE)", SCALED.replace("= k\n", "= k\n        self.log = logging.getLogger(str(time.time()))\n", 1))
    ),
    "lock that is left out": _twice(
        used(
            "Scale(RATE)",
            SCALED.replace("= k\n", "= k\n        self.lock = threading.Lock()\n", 1)
            + "    def __getstate__(self): return {'k': self.k}\n",
        )
    ),
    "object of no known kind": _twice(_closure("object")),
    "cache that functions fill": _twice(
        used("scaled", "CACHE = {}\nCACHE['began'] = time.time()\ndef scaled(x):\n    CACHE[x] = x\n    return x\n")
    ),
    "object that functions change": _twice(
        used(
            "scaled",
            SCALED + "scale = Scale(RATE)\nscale.k += os.getpid()\ndef scaled(x):\n    scale.k = x\n"
            "    return scale.times(x)\n",
        )
    ),
    "function that calls itself": _twice(used("scaled", "def scaled(x): return scaled(x - 1) if x else x\n")),
    "objects that have each other": _twice(
        used("one", SCALED, around="one, two = Scale(1), Scale(2)\none.other, two.other = two, one")
    ),
}

if not version("pyspark").startswith("3."):
    HARMLESS |= data_source_ways.HARMLESS

UNCOMPARED: dict[str, str] = {
    # With another value.
    "password": used("lambda x: x * len(str(password))", around="password = RATE"),
    "password in a table": _closure("{'password': RATE, 'n': [1]}"),
    "password of an object": used("Scale(RATE)", SCALED.replace("= k\n", "= 1\n        self.password = k\n", 1)),
    "only in a log line": used("scaled", around="text = RATE\ndef scaled(x, k=1):\n    log.info(text)\n    return x"),
    "order of a table": _closure("dict(sorted({'a': 1, 'b': [2]}.items(), reverse=RATE > 2))"),
    "order of a set as a list": _closure("list(set('ab')) if RATE > 2 else list(set('ba'))[::-1]"),
}
