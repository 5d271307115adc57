"""Edits of queries in SQL with ``WITH``, and of parts of expressions that the JSON of a plan does not have."""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.runtime.program_queries import Build, Case, Sources, by_window

GRID, REBUILD, ROWS = "not-restorable", "needs-rebuild", "changes-rows"
FILTER = "filter-before-state-changed"
HOURLY = "SELECT station, sum(n) AS total FROM warm GROUP BY window(at, '1 hour'), station"
WARM = f"WITH warm AS (SELECT * FROM readings WHERE temp > 3) {HOURLY}"
CHAIN = """
WITH warm AS (WITH all_rows AS (SELECT at, station, temp, n FROM readings) SELECT * FROM all_rows WHERE temp > 3),
     named AS (SELECT at, station AS place, n AS k FROM warm)
SELECT place AS station, sum(k) AS total FROM named GROUP BY window(at, '1 hour'), place
"""
TWICE = """
WITH all_rows AS (SELECT id, at, temp, n FROM readings)
SELECT a.id, a.at, b.temp FROM all_rows a JOIN all_rows b
ON a.id = b.id AND b.at >= a.at AND b.at <= a.at + INTERVAL 1 HOUR WHERE a.n > 0 AND b.n > 0
"""
COUNTED_TWICE = """
WITH counts AS (SELECT window, station, count(*) AS c FROM readings GROUP BY window(at, '1 hour'), station)
SELECT station, c FROM counts WHERE c > 1 UNION ALL SELECT station, c FROM counts WHERE c > 2
"""


def sql(text: str) -> Build:
    def build(s: Sources) -> DataFrame:
        s.marked().createOrReplaceTempView("readings")
        return s.spark.sql(text)

    return build


def _after(text: str, old: str, new: str) -> Build:
    assert old in text
    return sql(text.replace(old, new))


def tables_of_with() -> Iterator[Case]:
    warm = sql(WARM)
    inline = HOURLY.replace("warm", "(SELECT * FROM readings WHERE temp > 3)")
    yield Case("a table of WITH in place", warm, sql(inline), "same")
    yield Case("aggregate above WITH", warm, _after(WARM, "sum(n)", "max(n)"), REBUILD, "aggregates-changed")
    yield Case("window above WITH", warm, _after(WARM, "1 hour", "2 hours"), GRID, "window-changed")
    keys = WARM.replace("SELECT station", "SELECT city").replace("), station", "), city")
    yield Case("key above WITH", warm, sql(keys), REBUILD, "keys-changed")
    yield Case("filter in a table of WITH", warm, _after(WARM, "temp > 3", "temp > 4"), ROWS, FILTER)
    yield Case("tables of WITH that refer to each other", sql(CHAIN), warm, "same")
    yield Case("aggregate above such tables", sql(CHAIN), _after(CHAIN, "sum(k)", "max(k)"), REBUILD)
    yield Case("filter in the innermost table", sql(CHAIN), _after(CHAIN, "temp > 3", "temp > 4"), ROWS, FILTER)
    twice = sql(TWICE)
    yield Case("a table of WITH that is joined with itself", twice, twice, "same")
    yield Case("keys of such a join", twice, _after(TWICE, "a.id = b.id", "a.n = b.n"), REBUILD, "join-keys-changed")
    yield Case("filter of one side of it", twice, _after(TWICE, "b.n > 0", "b.n > 1"), ROWS, FILTER)
    counts = sql(COUNTED_TWICE)
    later = _after(COUNTED_TWICE, "c > 2", "c > 3")
    yield Case("a table with state that is used twice", counts, later, "compatible", "output-changed")
    yield Case("aggregate in it", counts, _after(COUNTED_TWICE, "count(*)", "sum(n)"), REBUILD, "aggregates-changed")


def _parsed(options: dict[str, str]) -> Build:
    def build(s: Sources) -> DataFrame:
        parsed = F.from_json("city", "seen TIMESTAMP", options)["seen"]
        return by_window(s.marked().where(parsed > F.lit("2026-01-01")), "station").count()

    return build


def _where(condition: str) -> Build:
    return lambda s: by_window(s.marked().where(condition), "station").count()


def _digits(factor: int) -> Build:
    def build(s: Sources) -> DataFrame:
        digits = F.split("city", "-").cast("array<long>")
        weighed = F.transform(digits, lambda x: F.aggregate(digits, F.lit(0).cast("long"), lambda a, b: a + b * x))
        return by_window(s.marked().where(F.exists(weighed, lambda x: x > factor)), "station").count()

    return build


def parts_of_expressions() -> Iterator[Case]:
    day, month = {"timestampFormat": "dd/MM/yyyy"}, {"timestampFormat": "MM/dd/yyyy"}
    yield Case("options of from_json", _parsed(day), _parsed(month), ROWS, FILTER, "timestampformat MM/dd/yyyy")
    yield Case("no options of from_json", _parsed(day), _parsed({}), ROWS, FILTER)
    yield Case("case of an option", _parsed(day), _parsed({"TIMESTAMPFORMAT": "dd/MM/yyyy"}), "same")
    csv = "from_csv(city, 'x INT', map('sep', '{}')).x = 1"
    yield Case("options of from_csv", _where(csv.format(";")), _where(csv.format("|")), ROWS, FILTER)
    raw = "CAST(city AS BINARY) = X'0{}'"
    yield Case("bytes", _where(raw.format(1)), _where(raw.format(2)), ROWS, FILTER, "X'02'")
    yield Case("the same bytes", _where(raw.format(1)), _where(raw.format(1)), "same")
    yield Case("the same lambda functions", _digits(1), _digits(1), "same")
    yield Case("a lambda function", _digits(1), _digits(2), ROWS, FILTER)
    named = "exists(split(city, '-'), {0} -> {0} > station)"
    yield Case("name of an argument", _where(named.format("x")), _where(named.format("y")), "same")
