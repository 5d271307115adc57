"""Sinks of a pipeline file: what is no sink, and paths, formats and options of wrong types."""

from __future__ import annotations

from tests.bad_input.case import Case, write
from tests.bad_input.pipelines import HEAD


def _sink(expression: str, error: str, exit_code: int = 2, says: str = "") -> Case:
    text = f"{HEAD}@p.stream(sink={expression})\ndef a(spark): ...\n"
    return Case("run p.py --stream nosuch", exit_code, error, write("p.py", text), says=says)


def _files(arguments: str, error: str, exit_code: int = 2) -> Case:
    return _sink(f"sw.sinks.files({arguments})", error, exit_code)


CASES = (
    _sink("None", "sink-kind"),
    _sink("'out'", "sink-kind", says="x/a"),
    _sink("5", "sink-kind"),
    _sink("sw.sinks.files", "sink-kind"),
    _sink("sw.sinks.FilesSink", "sink-kind"),
    _sink("sw.sinks", "sink-kind"),
    _sink("['out']", "sink-kind"),
    _sink("{'format': 'parquet', 'path': 'out'}", "sink-kind"),
    _sink("type('S', (), {'attach': print})()", "sink-kind"),
    _sink("sw.sinks.nosuch('x')", "sink-unknown", says="one of slackwater.sinks.files"),
    _sink("sw.sinks.hudi('x')", "sink-unknown", says="p.py:4"),
    _files("", "pipeline-fails"),
    _files("'parquet'", "pipeline-fails"),
    _sink("sw.sinks.files('parquett', 'o')", "sink-format", says="p.py:4"),
    _files("'', 'o'", "sink-format"),
    _files("None, 'o'", "sink-format"),
    _files("5, 'o'", "sink-format"),
    _files("['parquet'], 'o'", "sink-format"),
    _files("'PARQUET', 'o'", "sink-format"),
    _files("'delta', 'o'", "sink-format"),
    _sink("sw.sinks.delta(5)", "sink-path"),
    _sink("sw.sinks.delta('~/out')", "sink-path"),
    _sink("sw.sinks.delta('o', keys=5)", "sink-keys"),
    _sink("sw.sinks.delta('o', keys=['id', 'id'])", "sink-keys"),
    _sink("sw.sinks.delta('o', keys=[''])", "sink-keys"),
    _sink("sw.sinks.delta('o', txnAppId='mine')", "sink-option"),
    _sink("sw.sinks.delta('o', keys='id', mergeSchema=True)", "sink-option"),
    _sink("sw.sinks.delta('o', mergeSchema=None)", "sink-option-value"),
    _sink("sw.sinks.delta('o'), output_mode='update'", "output-mode"),
    _sink("sw.sinks.delta('o', keys='id'), output_mode='complete'", "output-mode"),
    _sink("sw.sinks.iceberg(5)", "sink-path"),
    _sink("sw.sinks.iceberg('~/out')", "sink-path"),
    _sink("sw.sinks.iceberg('out')", "sink-table"),
    _sink("sw.sinks.iceberg('lake..out')", "sink-table"),
    _sink("sw.sinks.iceberg('')", "sink-table"),
    _sink("sw.sinks.iceberg('a/b', keys=5)", "sink-keys"),
    _sink("sw.sinks.iceberg('a/b', branch='main')", "sink-option"),
    _sink("sw.sinks.iceberg('a/b', keys='id', fanout=True)", "sink-option"),
    _sink("sw.sinks.iceberg('lake.out'), output_mode='update'", "output-mode"),
    _sink("sw.sinks.iceberg('a/b', keys='id'), output_mode='complete'", "output-mode"),
    _files("'parquet', None", "sink-path"),
    _files("'parquet', 5", "sink-path"),
    _files("'parquet', 0", "sink-path"),
    _files("'parquet', True", "sink-path"),
    _files("'parquet', ''", "sink-path"),
    _files("'parquet', '  '", "sink-path"),
    _files("'parquet', b'o'", "sink-path"),
    _files("'parquet', ['o']", "sink-path"),
    _files("'parquet', {}", "sink-path"),
    _files("'parquet', object()", "sink-path"),
    _files("'parquet', 'a\\0b'", "sink-path"),
    _files("'parquet', '\\udcff'", "sink-path"),
    _files("'parquet', 'http://['", "sink-path"),
    _files("'parquet', '~nouser/o'", "sink-path"),
    _files("'parquet', 'o', 'more'", "pipeline-fails"),
    _files("'parquet', 'o', path='x'", "pipeline-fails"),
    _files("'parquet', 'o', checkpointLocation='x'", "sink-option"),
    _files("'parquet', 'o', Path='x'", "sink-option"),
    _files("'parquet', 'o', CHECKPOINTLOCATION='x'", "sink-option"),
    _files("'csv', 'o', sep=None", "sink-option-value"),
    _files("'csv', 'o', sep=[';']", "sink-option-value"),
    _files("'csv', 'o', sep={}", "sink-option-value"),
    _files("'csv', 'o', sep=b';'", "sink-option-value"),
    _files("'csv', 'o', sep=object()", "sink-option-value"),
    _files("'csv', 'o', sep=';', header=True, limit=5, ratio=0.5", "stream-unknown", 4),
    _files("'parquet', pathlib.Path('o')", "stream-unknown", 4),
    _files("'parquet', pathlib.PurePosixPath('/data/o')", "stream-unknown", 4),
    _files("'parquet', 's3a://bucket/o'", "stream-unknown", 4),
)
