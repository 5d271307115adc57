"""Ways in which the class of a data source in Python gets a value, and edits that change none: ``function_ways``."""

from __future__ import annotations

DATA_SOURCE = """
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, SimpleDataSourceStreamReader
{given}
class Reader(SimpleDataSourceStreamReader):
    K = {attribute}
    def __init__(self, k={default}):
        self.k, self.began = k, time.time()
    def initialOffset(self):
        return {{"at": 0}}
    def read(self, start):
        return iter([(self.k * self.K,)]), start
    def readBetweenOffsets(self, start, end):
        return iter([])
class Writer(DataSourceStreamWriter):
    def __init__(self, k):
        self.k = k
    def write(self, rows):
        Path("out", str(self.k)).write_text(str(len(list(rows))))
class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"
    def schema(self):
        return "value long"
    def simpleStreamReader(self, schema):
        log.info("reads")
        return {reader}
    def streamWriter(self, schema, overwrite):
        return {writer}
"""
READS = """
def stream(spark):
    spark.dataSource.register(Numbers)
    return spark.readStream.format("numbers").load().groupBy("value").count()
"""
WRITES = """
def written_by(spark):
    spark.dataSource.register(Numbers)
    return "numbers"
def column(spark):
    return F.col("value") + 1
"""


def _of_data_source(
    given: str = "",
    *,
    attribute: str = "1",
    default: str = "1",
    reader: str = "Reader()",
    writer: str = "Writer(1)",
    query: str = READS,
) -> str:
    return DATA_SOURCE.format(given=given, attribute=attribute, default=default, reader=reader, writer=writer) + query


def _made_around(text: str) -> str:
    head, of, rest = text.partition("class Numbers")
    body, query, last = rest.partition("\ndef ")
    inside = "".join(f"    {line}\n" for line in (of + body).splitlines())
    return f"{head}def made(k):\n{inside}    return Numbers\nNumbers = made(RATE)\n{query}{last}"


WAYS: dict[str, tuple[str, str]] = {
    # The text, and the name of the variable that the message has.
    "variable of a data source": (_of_data_source("K = RATE", reader="Reader(K)"), "K"),
    "attribute of a reader": (_of_data_source(attribute="RATE"), "Reader.K"),
    "default of a reader": (_of_data_source(default="RATE"), "k"),
    "partial of a reader": (
        _of_data_source("make = partial(lambda k: Reader(k), RATE)", reader="make()"),
        "k",
    ),
    "object of a data source": (
        _of_data_source("@dataclass\nclass Rates:\n    k: int\nrates = Rates(RATE)", reader="Reader(rates.k)"),
        "rates.k",
    ),
    "data source made around": (_made_around(_of_data_source(reader="Reader(k)")), "k"),
    "variable of a data source that writes": (
        _of_data_source("K = RATE", writer="Writer(K)", query=WRITES),
        "K",
    ),
}
_reads = _of_data_source("K = RATE", reader="Reader(K)")
HARMLESS: dict[str, tuple[str, str]] = {
    # Before and after.
    "rename of a data source's class": (_reads, _reads.replace("Numbers", "Figures").replace(" Reader(", " Feed(")),
    "log line of a data source": (_reads, _reads.replace('log.info("reads")', 'log.info("it reads")')),
    "log line where a data source is registered": (
        _reads,
        _reads.replace("    spark.data", "    log.info('registers')\n    spark.data"),
    ),
}
