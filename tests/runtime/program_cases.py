"""Edits of queries, with what they mean for kept state: built with Spark by ``programs/program_cases.py``."""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.runtime.program_queries import (
    READING,
    Build,
    Case,
    Sources,
    below_rows,
    both_rows,
    by_window,
    cleaned_by_lower,
    cleaned_by_upper,
    cleaned_elsewhere,
    distinct,
    every_rows,
    exploded_rows,
    filtered,
    itself_rows,
    joined,
    keyed,
    keys_rows,
    limited_rows,
    marked,
    methods,
    more_rows,
    none_rows,
    objects,
    one_rows,
    partials,
    plain_rows,
    registered_and_shown,
    registered_lower,
    registered_upper,
    results_rows,
    rounded_means,
    rows_rows,
    sessions,
    shown_by_lower,
    shown_by_upper,
    static_rows,
    totals,
    twice_rows,
    typed_rows,
    windowed,
    with_state,
)
from tests.runtime.sql_cases import parts_of_expressions, tables_of_with

GRID = "not-restorable"
WINDOW = "window-changed"
KEYS = "keys-changed"
AGGREGATES = "aggregates-changed"
FILTER = "filter-before-state-changed"


def _windows() -> Iterator[Case]:
    hour = windowed("1 hour")
    yield Case("window length", hour, windowed("30 minutes"), GRID, WINDOW, "length was 1 hour, is 30 minutes")
    yield Case("window offset", hour, windowed("1 hour", "1 hour", "15 minutes"), GRID, WINDOW, "offset was 0 seconds")
    yield Case("window slide", hour, windowed("1 hour", "20 minutes"), GRID, WINDOW, "slide was 1 hour, is 20 minutes")
    sliding = windowed("1 hour", "20 minutes")
    yield Case("uneven slide", sliding, windowed("1 hour", "25 minutes"), GRID, WINDOW)
    yield Case("length of a sliding window", sliding, windowed("2 hours", "20 minutes"), GRID, WINDOW)
    yield Case("window in days", hour, windowed("1 day"), GRID, WINDOW, "is 1 day")
    yield Case(
        "time of the window",
        marked(),
        lambda s: by_window(s.marked(), window=F.window("seen", "1 hour")).count(),
        GRID,
        WINDOW,
    )
    gaps = sessions("5 minutes")
    yield Case("session gap", gaps, sessions("10 minutes"), GRID, "session-gap-changed", "was 5 minutes, is 10 minutes")
    wide = "CASE WHEN n > 3 THEN '5 minutes' ELSE '10 minutes' END"
    yield Case("session gap from static to dynamic", gaps, sessions(wide), GRID, "session-gap-changed")
    yield Case("session to window", gaps, marked(), GRID, "window-kind-changed")


def _watermarks() -> Iterator[Case]:
    column = "watermark-column-changed"
    yield Case("watermark column", marked(), marked("seen"), GRID, column, "was at, is seen")
    delay = "watermark-delay-changed"
    yield Case("delay raised", marked(), marked(delay="2 hours"), "compatible", delay, "was 1 hour, is 2 hours")
    yield Case("delay lowered", marked(), marked(delay="10 minutes"), "changes-rows", delay)
    yield Case("watermark removed in complete mode", marked(), none_rows, "same", mode="complete")
    both = "watermark removed below a deduplication in complete mode"
    bare = "watermark-removed"
    yield Case(both, twice_rows, lambda s: twice_rows(s, marked=False), "needs-rebuild", bare, mode="complete")


def _keys() -> Iterator[Case]:
    station = keyed("station")
    rebuild = "needs-rebuild"
    yield Case("key of the same type", station, keyed("city"), rebuild, KEYS, "key city was added")
    upper = keyed(lambda: F.upper("station").alias("station"))
    yield Case("key with another expression", station, upper, rebuild, KEYS, "key station is upper(station) now")
    yield Case(
        "order of two keys", keyed("station", "city"), keyed("city", "station"), rebuild, KEYS, "different order"
    )
    yield Case("key added", station, keyed("station", "city"), rebuild, KEYS, "key city was added")
    yield Case("key removed", keyed("station", "city"), station, rebuild, KEYS, "key city was removed")
    literal = keyed(lambda: F.concat(F.col("station"), F.lit("-a")).alias("station"))
    other = keyed(lambda: F.concat(F.col("station"), F.lit("-b")).alias("station"))
    yield Case("literal in a key", literal, other, rebuild, KEYS)
    yield Case("type of a key", station, typed_rows, rebuild, KEYS, "key station was string, is long")


def _aggregates() -> Iterator[Case]:
    rebuild = "needs-rebuild"
    n = totals("sum(n) AS x")
    yield Case("sum to max", n, totals("max(n) AS x"), rebuild, AGGREGATES, "aggregate x is max(n) now, was sum(n)")
    yield Case("sum of another column", n, totals("sum(m) AS x"), rebuild, AGGREGATES, "is sum(m) now")
    both = totals("sum(n) AS x", "sum(m) AS y")
    yield Case("two sums swapped", both, totals("sum(m) AS x", "sum(n) AS y"), rebuild, AGGREGATES)
    when = totals("sum(CASE WHEN n > 3 THEN m END) AS x")
    yield Case("filter inside an aggregate", totals("sum(m) AS x"), when, rebuild, AGGREGATES)
    least = totals("sum(CASE WHEN n > 4 THEN m END) AS x")
    yield Case("other filter inside an aggregate", when, least, rebuild, AGGREGATES)
    where = totals("sum(m) FILTER (WHERE n > 3) AS x")
    yield Case("FILTER of an aggregate", totals("sum(m) AS x"), where, rebuild, AGGREGATES)
    yield Case("aggregate added", n, both, rebuild, AGGREGATES, "aggregate y (sum(m)) was added")
    yield Case("aggregate removed", both, n, rebuild, AGGREGATES, "aggregate y (sum(m)) was removed")
    doubled = totals("sum(n * 2) AS x")
    yield Case("literal in an aggregate", doubled, totals("sum(n * 3) AS x"), rebuild, AGGREGATES)
    count: Build = totals("count(n) AS x")
    yield Case("count of rows to count of a column", totals("count(*) AS x"), count, rebuild, AGGREGATES)
    local = totals("max(hour(at)) AS x")
    yield Case("time zone in an aggregate", local, local, rebuild, AGGREGATES, conf="Asia/Tokyo")


def _filters() -> Iterator[Case]:
    rows = "changes-rows"
    warm = filtered("temp > 3")
    yield Case("filter before a window", warm, filtered("temp > 4"), rows, FILTER, "filter (temp > 4.0) was added")
    yield Case("filter removed", warm, filtered(), rows, FILTER, "filter (temp > 3.0) was removed")
    yield Case(
        "values of a list",
        filtered(lambda: F.col("city").isin("a", "b")),
        filtered(lambda: F.col("city").isin("a", "c")),
        rows,
        FILTER,
    )
    long = [f"city {number}" for number in range(60)]
    yield Case(
        "value of a long list",
        filtered(lambda: F.col("city").isin(long)),
        filtered(lambda: F.col("city").isin([*long[1:], "x"])),
        rows,
        FILTER,
    )
    yield Case("other filter below the watermark", warm, below_rows, rows, FILTER)
    yield Case("filter of a key above the window", keys_rows("a"), keys_rows("b"), rows, FILTER)
    yield Case("filter of a result", results_rows(1), results_rows(2), "compatible", "output-changed")
    yield Case("function of a key", cleaned_by_upper, cleaned_by_lower, rows, "function-changed", "function clean")
    yield Case("registered function of a key", registered_upper, registered_lower, rows, "function-changed", "tidy")
    yield Case(
        "column behind a registered function", registered_upper, registered_and_shown, "compatible", "output-changed"
    )
    for name, build in (("object", objects), ("method", methods), ("partial", partials)):
        yield Case(f"{name} as a function of a key", build("a"), build("b"), rows, "function-changed")
        yield Case(f"the same {name} as a function", build("a"), build("a"), "same")
    yield Case("function above the state", shown_by_upper, shown_by_lower, "compatible", "output-changed")
    yield Case("rounding of a result", rounded_means(1), rounded_means(2), "compatible", "output-changed")
    yield Case("explode in a key", exploded_rows(","), exploded_rows(";"), "needs-rebuild", KEYS)
    yield Case("filter of a joined table", static_rows("n > 0"), static_rows("n > 1"), rows, "input-changed")
    yield Case(
        "type of a column that is read",
        warm,
        lambda s: by_window(
            s.files(schema=READING.replace("temp DOUBLE", "temp FLOAT"))
            .withWatermark("at", "1 hour")
            .where("temp > 3"),
            "station",
        ).count(),
        rows,
    )


def _deduplications() -> Iterator[Case]:
    code, rebuild = "dedup-keys-changed", "needs-rebuild"
    kind = "dedup-kind-changed"
    yield Case("dedup from within the watermark", distinct("id", within=True), distinct("id"), rebuild, kind)
    yield Case("column of a dedup of all columns", every_rows, more_rows, rebuild, code)


def _joins() -> Iterator[Case]:
    rebuild, base = "needs-rebuild", joined()
    keys = "a.n = b.n AND b.at >= a.at AND b.at <= a.at + INTERVAL 1 HOUR"
    longer = "a.id = b.id AND b.at >= a.at AND b.at <= a.at + INTERVAL 2 HOURS"
    yield Case("join keys", base, joined(keys), rebuild, "join-keys-changed")
    yield Case("join type", base, joined(how="left"), rebuild, "join-type-changed", "was inner, is left outer")
    yield Case("join type, other side", joined(how="left"), joined(how="right"), rebuild, "join-type-changed")
    yield Case(
        "filter of one side in the condition",
        base,
        joined(longer.replace("2 HOURS", "1 HOUR") + " AND b.m > 2"),
        "changes-rows",
        FILTER,
    )
    yield Case("column of a joined row", base, joined(columns="a.id, a.at, b.rain"), rebuild, "join-columns-changed")
    yield Case(
        "column added to joined rows",
        base,
        joined(columns="a.id, a.at, b.temp, b.rain"),
        rebuild,
        "join-columns-changed",
    )
    yield Case(
        "sides of a join with itself swapped",
        itself_rows("n > 0", "m > 0"),
        itself_rows("m > 0", "n > 0"),
        rebuild,
        "join-sides-swapped",
    )


def _own_state() -> Iterator[Case]:
    base, rebuild = with_state(), "needs-rebuild"
    yield Case("type of a state field", base, with_state(state="n LONG, total DOUBLE"), rebuild, "state-schema-changed")
    yield Case(
        "output fields swapped",
        base,
        with_state(output="station STRING, total LONG, n LONG"),
        "compatible",
        "output-changed",
    )
    yield Case("timeout", base, with_state(timeout="EventTimeTimeout"), rebuild, "timeout-changed")
    timed = with_state(timeout="ProcessingTimeTimeout")
    yield Case("kind of timeout", timed, with_state(timeout="EventTimeTimeout"), rebuild, "timeout-changed")
    fewer = with_state(columns=("id", "station", "n", "at"))
    yield Case("column of a function with state removed", base, fewer, "changes-rows", "input-columns-changed")
    yield Case("column of a function with state added", fewer, base, "same")


def _operators() -> Iterator[Case]:
    code = "operators-changed"
    yield Case("aggregation added", plain_rows, marked(), GRID, code, "aggregation by window, station was added")
    yield Case("deduplication added", marked(), twice_rows, "needs-rebuild", code, "deduplication by id, at was added")
    yield Case("limit", limited_rows(5), limited_rows(6), "changes-rows", "limit-changed")
    yield Case("limit added", lambda s: s.files().select("n"), limited_rows(5), "needs-rebuild", code)


def _sources() -> Iterator[Case]:
    code = "sources-changed"
    yield Case("source added", one_rows(), both_rows("readings", "others"), GRID, code, "had 1 source, has 2 sources")
    yield Case("option of a source", one_rows(), one_rows(multiLine="true"), "changes-rows", "source-options-changed")
    yield Case("glob", one_rows(), one_rows(pathGlobFilter="*.json"), "changes-rows", "source-options-changed")
    yield Case("rate limit", one_rows(), one_rows(maxFilesPerTrigger="3"), "same")
    zone = one_rows()
    yield Case("time zone of parsed files", zone, zone, "changes-rows", "time-zone-changed", conf="Asia/Tokyo")


def _stateless() -> Iterator[Case]:
    yield Case("filter without state", rows_rows("n > 1"), rows_rows("n > 2"), "compatible", "output-changed")
    yield Case(
        "projection without state",
        rows_rows("n > 1"),
        lambda s: s.files().where("n > 1").selectExpr("id", "n + 1 AS n"),
        "compatible",
        "output-changed",
    )
    yield Case(
        "column without state",
        rows_rows("n > 1"),
        lambda s: s.files().where("n > 1").select("id", "n", "m"),
        "compatible",
        "output-changed",
    )
    yield Case(
        "path without state",
        rows_rows("n > 1"),
        lambda s: s.files("others").where("n > 1").select("id", "n"),
        GRID,
        "sources-changed",
    )


def _harmless() -> Iterator[Case]:
    def same(name: str, before: Build, after: Build, effect: str = "same") -> Case:
        return Case(name, before, after, effect)

    def two_selects(s: Sources) -> DataFrame:
        rows = s.marked().select("id", "station", "at", "n", "m").select("station", "at", F.col("n").alias("k"))
        return by_window(rows, "station").agg(F.sum("k").alias("total"))

    n = keyed("station")
    yield same("two selects", n, two_selects)
    yield same(
        "renamed and back",
        n,
        lambda s: keyed("station")(s).withColumnRenamed("total", "x").withColumnRenamed("x", "total"),
    )
    both = filtered(lambda: (F.col("n") > 1) & (F.col("m") > 2))
    yield same("two filters in one", filtered("n > 1", "m > 2"), both)
    yield same("filters in another order", filtered("n > 1", "m > 2"), filtered("m > 2", "n > 1"))
    yield same("operands in another order", filtered("n = m + 1"), filtered("1 + m = n"))
    yield same("comparison the other way round", filtered("n > 1"), filtered("1 < n"))
    yield same("negation", filtered("NOT (n > 1)"), filtered("n <= 1"))
    yield same("column as an object", n, keyed(lambda: F.col("station")))
    yield same("column of SQL", n, keyed(lambda: F.expr("station")))
    yield same("list in another order", filtered("city IN ('a', 'b')"), filtered(lambda: F.col("city").isin("b", "a")))
    yield same("between", filtered("n BETWEEN 1 AND 5"), filtered("n >= 1", "n <= 5"))
    yield same(
        "filter below the watermark",
        filtered("temp > 3"),
        lambda s: by_window(s.files().where("temp > 3").withWatermark("at", "1 hour"), "station").count(),
    )
    yield same(
        "filter of a key above the state", filtered("station = 'x'"), lambda s: filtered()(s).where("station = 'x'")
    )
    yield same(
        "unused column",
        n,
        lambda s: by_window(s.marked().withColumn("unused", F.col("n") * 7), "station").agg(F.sum("n").alias("total")),
    )
    yield same(
        "unused columns dropped",
        n,
        lambda s: by_window(s.marked().drop("city", "m", "rain"), "station").agg(F.sum("n").alias("total")),
    )
    yield same(
        "unused column of the source",
        n,
        lambda s: by_window(s.files(schema=READING + ", more INT").withWatermark("at", "1 hour"), "station").agg(
            F.sum("n").alias("total")
        ),
    )
    yield same(
        "cache, coalesce and hint",
        n,
        lambda s: by_window(s.marked().coalesce(1).hint("rebalance").repartition(2), "station").agg(
            F.sum("n").alias("total")
        ),
    )
    yield same(
        "alias of the rows", n, lambda s: by_window(s.marked().alias("r"), "r.station").agg(F.sum("r.n").alias("total"))
    )
    yield same(
        "column above the state", n, lambda s: keyed("station")(s).withColumn("twice", F.col("total") * 2), "compatible"
    )
    yield same(
        "alias of an aggregate", n, lambda s: keyed("station")(s).withColumnRenamed("total", "sum"), "compatible"
    )
    yield same("aggregate in SQL", totals(lambda: F.sum("n").alias("x")), totals("sum(n) AS x"))
    yield same("count of one", totals("count(*) AS x"), totals(lambda: F.count(F.lit(1)).alias("x")))
    yield same("a function on other lines", cleaned_by_upper, cleaned_elsewhere)
    yield same(
        "seed that Spark picks", filtered("n > 1"), lambda s: filtered("n > 1")(s).where(F.rand() < 2), "compatible"
    )
    yield same("random filter", filtered("rand() < 0.5"), filtered("rand() < 0.5"))
    yield same(
        "unused column of a joined side",
        joined(),
        lambda s: joined(columns="a.id, a.at, b.temp, b.rain")(s).drop("rain"),
    )
    yield same(
        "equation of a join the other way round",
        joined(),
        joined("b.id = a.id AND a.at <= b.at AND a.at + INTERVAL 1 HOUR >= b.at"),
    )
    yield same(
        "aggregate that is dropped", totals("sum(n) AS x"), lambda s: totals("sum(n) AS x", "max(m) AS y")(s).drop("y")
    )
    yield same("window in minutes", windowed("1 hour"), windowed("60 minutes"))
    yield same("slide of its length", windowed("1 hour"), windowed("1 hour", "1 hour"))
    yield same("gap in seconds", sessions("5 minutes"), sessions("300 seconds"))
    yield same("literal of another width", filtered("n > 1"), filtered(lambda: F.col("n") > F.lit(1).cast("long")))
    yield same(
        "time zone without times",
        lambda s: s.files(schema="id LONG").dropDuplicates(["id"]),
        lambda s: s.files(schema="id LONG").dropDuplicates(["id"]),
    )


def cases() -> list[Case]:
    groups = (
        _windows,
        _watermarks,
        _keys,
        _aggregates,
        _filters,
        _deduplications,
        _joins,
        _own_state,
        _operators,
        _sources,
        _stateless,
        _harmless,
        tables_of_with,
        parts_of_expressions,
    )
    return [case for group in groups for case in group()]
