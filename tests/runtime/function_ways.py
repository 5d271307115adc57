"""Ways in which a Python function of a query gets a value, and edits that change no value. No Spark is needed to read.

Each is a module's text: ``column(spark)`` returns the column that the query's keys are made with. ``RATE`` stands for
a value that is computed when the module is imported or the query is built.
"""

from __future__ import annotations

from importlib.metadata import version

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

WAYS: dict[str, tuple[str, str]] = {
    # The text, and the name of the variable that the message has.
    "variable of a module": ("K = RATE\ndef column(spark): return F.udf(lambda x: x * K, 'long')('value')", "K"),
    "variable around": (
        "def column(spark):\n    k = RATE\n    return F.udf(lambda x: x * k, 'long')('value')",
        "k",
    ),
    "argument of a function around": (MAKE + "def column(spark): return F.udf(make(RATE), 'long')('value')", "k"),
    "function made at the import": (
        MAKE + "used = make(RATE)\ndef column(spark): return F.udf(used, 'long')('value')",
        "k",
    ),
    "two functions around": (
        (
            "def outer(k):\n    def inner(j):\n        return lambda x: x * k + j\n    return inner\n"
            "def column(spark): return F.udf(outer(RATE)(1), 'long')('value')"
        ),
        "k",
    ),
    "file of the project": (
        (
            "FILE = Path(__file__).with_name('rate.txt')\nFILE.write_text(str(RATE))\n"
            "def scaled(x): return x * int(FILE.read_text())\ndef column(spark): return F.udf(scaled, 'long')('value')"
        ),
        "file rate.txt",
    ),
    "default": ("def scaled(x, k=RATE): return x * k\ndef column(spark): return F.udf(scaled, 'long')('value')", "k"),
    "default of a keyword": (
        "def scaled(x, *, k=RATE): return x * k\ndef column(spark): return F.udf(scaled, 'long')('value')",
        "k",
    ),
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
    "partial": (
        "def scaled(k, x): return x * k\ndef column(spark): return F.udf(partial(scaled, RATE), 'long')('value')",
        "k",
    ),
    "keyword of a partial": (
        "def scaled(x, k): return x * k\ndef column(spark): return F.udf(partial(scaled, k=RATE), 'long')('value')",
        "k",
    ),
    "function of a partial": (
        (
            "def up(x, by): return x + by\ndef down(x, by): return x - by\n"
            "def column(spark): return F.udf(partial(up if RATE > 2 else down, by=1), 'long')('value')"
        ),
        "function",
    ),
    "callable object": (SCALED + "def column(spark): return F.udf(Scale(RATE), 'long')('value')", "k"),
    "bound method": (SCALED + "def column(spark): return F.udf(Scale(RATE).times, 'long')('value')", "k"),
    "object of a module": (
        SCALED + "scale = Scale(RATE)\ndef column(spark): return F.udf(lambda x: x * scale.k, 'long')('value')",
        "scale.k",
    ),
    "method of an object of a module": (
        SCALED
        + "scale = Scale(RATE)\ndef scaled(x): return scale.times(x)\n"
        + "def column(spark): return F.udf(scaled, 'long')('value')",
        "scale.k",
    ),
    "object around": (
        SCALED + "def column(spark):\n    scale = Scale(RATE)\n    return F.udf(lambda x: scale(x), 'long')('value')",
        "scale.k",
    ),
    "object in an object": (
        SCALED + "class Outer:\n    def __init__(self, inner): self.inner = inner\n"
        "    def __call__(self, x): return self.inner(x)\n"
        "def column(spark): return F.udf(Outer(Scale(RATE)), 'long')('value')",
        "inner.k",
    ),
    "object with slots": (
        (
            "class Scale:\n    __slots__ = ('k',)\n    def __init__(self, k): self.k = k\n"
            "    def __call__(self, x): return x * self.k\n"
            "def column(spark): return F.udf(Scale(RATE), 'long')('value')"
        ),
        "k",
    ),
    "object of a derived class": (
        SCALED + "class Twice(Scale):\n    def __call__(self, x): return 2 * super().__call__(x)\n"
        "def column(spark): return F.udf(Twice(RATE), 'long')('value')",
        "k",
    ),
    "attribute of a class": (
        (
            "class Scale:\n    K = RATE\n    def times(self, x): return x * self.K\n"
            "def column(spark): return F.udf(Scale().times, 'long')('value')"
        ),
        "K",
    ),
    "attribute of a base class": (
        (
            "class Base:\n    K = RATE\nclass Scale(Base):\n    def times(self, x): return x * self.K\n"
            "def column(spark): return F.udf(Scale().times, 'long')('value')"
        ),
        "K",
    ),
    "attribute of a class by its name": (
        "class Scale:\n    K = RATE\ndef column(spark): return F.udf(lambda x: x * Scale.K, 'long')('value')",
        "Scale.K",
    ),
    "class method": (
        (
            "class Scale:\n    K = RATE\n    @classmethod\n    def times(cls, x): return x * cls.K\n"
            "def column(spark): return F.udf(Scale.times, 'long')('value')"
        ),
        "K",
    ),
    "method that reads a module": (
        (
            "K = Counter(a=RATE)\nclass Scale:\n    def __call__(self, x): return x * K['a']\n"
            "def column(spark): return F.udf(Scale(), 'long')('value')"
        ),
        "K",
    ),
    "data class": (
        (
            "@dataclass\nclass Rates:\n    k: int = 1\n"
            "def column(spark):\n    rates = Rates(RATE)\n    return F.udf(lambda x: x * rates.k, 'long')('value')"
        ),
        "rates.k",
    ),
    "named tuple": (
        (
            "Rates = namedtuple('Rates', 'k')\n"
            "def column(spark):\n    rates = Rates(RATE)\n    return F.udf(lambda x: x * rates.k, 'long')('value')"
        ),
        "rates",
    ),
    "enumeration": (
        (
            "class Mode(Enum):\n    ONE = 2\n    TWO = 3\n"
            "def column(spark):\n    mode = Mode(RATE)\n    return F.udf(lambda x: x * mode.value, 'long')('value')"
        ),
        "mode",
    ),
    "decorator's argument": (
        (BY + "@by(RATE)\ndef scaled(x): return x\ndef column(spark): return F.udf(scaled, 'long')('value')"),
        "k",
    ),
    "decorated helper": (
        (
            BY + "@by(RATE)\ndef helper(x): return x\n"
            "def column(spark): return F.udf(lambda x: helper(x), 'long')('value')"
        ),
        "k",
    ),
    "helper with a default": (
        "def helper(x, k=RATE): return x * k\ndef column(spark): return F.udf(lambda x: helper(x), 'long')('value')",
        "k",
    ),
    "helper made around": (
        MAKE
        + "def column(spark):\n    helper = make(RATE)\n    return F.udf(lambda x: helper(x) + 1, 'long')('value')",
        "k",
    ),
    "cached helper": (
        (
            "k = [RATE]\n@lru_cache\ndef helper(x): return x * k[0]\n"
            "def column(spark): return F.udf(lambda x: helper(x), 'long')('value')"
        ),
        "k",
    ),
    "function in a table": (
        MAKE + "def column(spark):\n    table = {'a': make(RATE)}\n"
        "    return F.udf(lambda x: table['a'](x), 'long')('value')",
        "table",
    ),
    "attribute of a function": (
        "def scaled(x): return x * scaled.k\nscaled.k = RATE\ndef column(spark): return F.udf(scaled, 'long')('value')",
        "k",
    ),
    "broadcast variable": (
        (
            "def column(spark):\n    b = spark.sparkContext.broadcast({'a': RATE})\n"
            "    return F.udf(lambda x: x * b.value['a'], 'long')('value')"
        ),
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
    "array": (
        "def column(spark):\n    k = np.arange(RATE)\n    return F.udf(lambda x: x * len(k), 'long')('value')",
        "k",
    ),
    "table of pandas": (
        (
            "def column(spark):\n    k = pd.DataFrame({'a': [RATE]})\n"
            "    return F.udf(lambda x: x * int(k.a[0]), 'long')('value')"
        ),
        "k",
    ),
    "set": (
        "def column(spark):\n    k = {'a', str(RATE)}\n    return F.udf(lambda x: str(x) in k, 'boolean')('value')",
        "k",
    ),
    "set of objects": (
        SCALED + "def column(spark):\n    k = {Scale(1), Scale(RATE)}\n"
        "    return F.udf(lambda x: x * len(k), 'long')('value')",
        "k",
    ),
    "large table": (
        (
            "def column(spark):\n    k = {str(n): n for n in range(200_000)} | {'a': RATE}\n"
            "    return F.udf(lambda x: x * k['a'], 'long')('value')"
        ),
        "k",
    ),
    "other module": ("import other\ndef column(spark): return F.udf(lambda x: x * other.K, 'long')('value')", "K"),
    "helper of another module": (
        "from other import helper\ndef column(spark): return F.udf(lambda x: helper(x), 'long')('value')",
        "K",
    ),
    "object of another module": (
        "from other import scale\ndef column(spark): return F.udf(lambda x: scale.times(x), 'long')('value')",
        "scale.k",
    ),
    "class of another module": (
        "from other import Scale\ndef column(spark): return F.udf(Scale(RATE).times, 'long')('value')",
        "k",
    ),
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
    "rename of a variable of a module": (
        "K = RATE\ndef column(spark): return F.udf(lambda x: x * K, 'long')('value')",
        "R = RATE\ndef column(spark): return F.udf(lambda x: x * R, 'long')('value')",
    ),
    "rename of an argument": (
        MAKE + "def column(spark): return F.udf(make(RATE), 'long')('value')",
        MAKE.replace("k", "r").replace("mare", "make") + "def column(spark): return F.udf(make(RATE), 'long')('value')",
    ),
    "rename of a default": (
        "def scaled(x, k=RATE): return x * k\ndef column(spark): return F.udf(scaled, 'long')('value')",
        "def scaled(x, r=RATE): return x * r\ndef column(spark): return F.udf(scaled, 'long')('value')",
    ),
    "rename of a helper": (
        MAKE + "used = make(RATE)\ndef column(spark): return F.udf(lambda x: used(x), 'long')('value')",
        MAKE + "helper = make(RATE)\ndef column(spark): return F.udf(lambda x: helper(x), 'long')('value')",
    ),
    "rename of an object's class": (
        SCALED + "def column(spark):\n    s = Scale(RATE)\n    return F.udf(lambda x: s.times(x), 'long')('value')",
        SCALED.replace("Scale", "Rate")
        + "def column(spark):\n    s = Rate(RATE)\n    return F.udf(lambda x: s.times(x), 'long')('value')",
    ),
    "moved lines": (
        _closure("RATE"),
        "# Why.\n\n" + _closure("RATE").replace("    return", "\n    # Now.\n    return"),
    ),
    "other order of methods": (
        SCALED + "def column(spark): return F.udf(Scale(RATE).times, 'long')('value')",
        _reordered(SCALED) + "def column(spark): return F.udf(Scale(RATE).times, 'long')('value')",
    ),
    "docstring and annotations": (
        "def scaled(x, k=RATE): return x * k\ndef column(spark): return F.udf(scaled, 'long')('value')",
        (
            "def scaled(x: int, k: int = RATE) -> int:\n    'Scales.'\n    return x * k\n"
            "def column(spark): return F.udf(scaled, 'long')('value')"
        ),
    ),
    "other text of a log line": (
        "def scaled(x):\n    log.info('a')\n    return x\ndef column(spark): return F.udf(scaled, 'long')('value')",
        "def scaled(x):\n    log.info('b')\n    return x\ndef column(spark): return F.udf(scaled, 'long')('value')",
    ),
    "text of a log line from a module": (
        (
            "TEXT = 'a'\ndef scaled(x):\n    log.info(TEXT)\n    return x\n"
            "def column(spark): return F.udf(scaled, 'long')('value')"
        ),
        (
            "TEXT = 'b'\ndef scaled(x):\n    log.info(TEXT)\n    return x\n"
            "def column(spark): return F.udf(scaled, 'long')('value')"
        ),
    ),
    "text of a log line from around": (
        (
            "def column(spark):\n    text = 'a'\n    def scaled(x):\n        log.info(text)\n        return x\n"
            "    return F.udf(scaled, 'long')('value')"
        ),
        (
            "def column(spark):\n    text = 'b'\n    def scaled(x):\n        log.info(text)\n        return x\n"
            "    return F.udf(scaled, 'long')('value')"
        ),
    ),
    "time that a function asks for": _twice(
        "def scaled(x): return x * time.time()\ndef column(spark): return F.udf(scaled, 'double')('value')"
    ),
    "time of the start": _twice(_closure("time.time()")),
    "time of the start as text": _twice(_closure("f'run {time.time()}'")),
    "time of the import": _twice(
        "T = time.time()\ndef column(spark): return F.udf(lambda x: x * T, 'double')('value')"
    ),
    "time of the import around": _twice(
        "T = time.time()\ndef column(spark):\n    k = str(T)\n    return F.udf(lambda x: k, 'string')('value')"
    ),
    "time as a default": _twice(
        "def scaled(x, k=time.time()): return x * k\ndef column(spark): return F.udf(scaled, 'double')('value')"
    ),
    "time as an argument": _twice(MAKE + "def column(spark): return F.udf(make(time.time()), 'double')('value')"),
    "time in a partial": _twice(
        "def scaled(k, x): return k\ndef column(spark): return F.udf(partial(scaled, time.time()), 'double')('value')"
    ),
    "time in an object": _twice(
        SCALED.replace("= k\n", "= k\n        self.began = time.time()\n", 1)
        + "def column(spark): return F.udf(Scale(RATE), 'long')('value')"
    ),
    "time given to an object": _twice(SCALED + "def column(spark): return F.udf(Scale(time.time()), 'long')('value')"),
    "time in a data class": _twice(
        "@dataclass\nclass Run:\n    k: float = field(default_factory=time.time)\n"
        "def column(spark):\n    run = Run()\n    return F.udf(lambda x: run.k, 'double')('value')"
    ),
    "identifier of the run": _twice(_closure("uuid.uuid4()")),
    "process": _twice(_closure("{'pid': os.getpid(), 'run': str(uuid.uuid4())}")),
    "random numbers": _twice(_closure("random.random()")),
    "generator of random numbers": _twice(_closure("random.Random()")),
    "generator of random numbers of an object": _twice(
        SCALED.replace("= k\n", "= k\n        self.chance = random.Random()\n", 1)
        + "def column(spark): return F.udf(Scale(RATE), 'long')('value')"
    ),
    "generator of random numbers of numpy": _twice(_closure("np.random.default_rng()")),
    "folder of the run": _twice("import tempfile\n" + _closure("tempfile.mkdtemp()")),
    "logger of an object": _twice(
        SCALED.replace("= k\n", "= k\n        self.log = logging.getLogger(str(time.time()))\n", 1)
        + "def column(spark): return F.udf(Scale(RATE), 'long')('value')"
    ),
    "lock that is left out": _twice(
        SCALED.replace("= k\n", "= k\n        self.lock = threading.Lock()\n", 1)
        + "    def __getstate__(self): return {'k': self.k}\n"
        "def column(spark): return F.udf(Scale(RATE), 'long')('value')"
    ),
    "object of no known kind": _twice(_closure("object")),
    "cache that functions fill": _twice(
        "CACHE = {}\nCACHE['began'] = time.time()\n"
        "def scaled(x):\n    CACHE[x] = x\n    return x\ndef column(spark): return F.udf(scaled, 'long')('value')"
    ),
    "object that functions change": _twice(
        SCALED
        + "scale = Scale(RATE)\nscale.k += os.getpid()\ndef scaled(x):\n    scale.k = x\n    return scale.times(x)\n"
        + "def column(spark): return F.udf(scaled, 'long')('value')"
    ),
    "function that calls itself": _twice(
        "def scaled(x): return scaled(x - 1) if x else x\ndef column(spark): return F.udf(scaled, 'long')('value')"
    ),
    "objects that have each other": _twice(
        SCALED + "def column(spark):\n    one, two = Scale(1), Scale(2)\n    one.other, two.other = two, one\n"
        "    return F.udf(one, 'long')('value')"
    ),
}

if not version("pyspark").startswith("3."):
    HARMLESS |= data_source_ways.HARMLESS

UNCOMPARED: dict[str, str] = {
    # With another value.
    "password": (
        "def column(spark):\n    password = RATE\n    return F.udf(lambda x: x * len(str(password)), 'long')('value')"
    ),
    "password in a table": _closure("{'password': RATE, 'n': [1]}"),
    "password of an object": (
        SCALED.replace("= k\n", "= 1\n        self.password = k\n", 1)
        + "def column(spark): return F.udf(Scale(RATE), 'long')('value')"
    ),
    "only in a log line": (
        "def column(spark):\n    text = RATE\n    def scaled(x, k=1):\n        log.info(text)\n        return x\n"
        "    return F.udf(scaled, 'long')('value')"
    ),
    "order of a table": _closure("dict(sorted({'a': 1, 'b': [2]}.items(), reverse=RATE > 2))"),
    "order of a set as a list": _closure("list(set('ab')) if RATE > 2 else list(set('ba'))[::-1]"),
}
