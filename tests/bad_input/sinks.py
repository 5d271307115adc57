"""Sinks of a pipeline file: what is no sink, and paths, formats and options of wrong types."""

from tests.bad_input.case import Case, each, write
from tests.bad_input.pipelines import HEAD


def _sink(expression: str, error: str, exit_code: int = 2, says: str = "") -> Case:
    text = f"{HEAD}@p.stream(sink={expression})\ndef a(spark): ...\n"
    return Case("run p.py --stream nosuch", exit_code, error, write("p.py", text), says=says)


def _files(arguments: str, error: str, exit_code: int = 2) -> Case:
    return _sink(f"sw.sinks.files({arguments})", error, exit_code)


CASES = (
    _sink("None", "sink-kind"),
    _sink("'out'", "sink-kind", says="x/a"),
    *each(_sink, "sink-kind", "5", "sw.sinks.files", "sw.sinks.FilesSink", "sw.sinks", "['out']"),
    *each(_sink, "sink-kind", "{'format': 'parquet', 'path': 'out'}", "type('S', (), {'attach': print})()"),
    _sink("sw.sinks.nosuch('x')", "sink-unknown", says="one of slackwater.sinks.files"),
    _sink("sw.sinks.hudi('x')", "sink-unknown", says="p.py:4"),
    *each(_files, "pipeline-fails", "", "'parquet'"),
    _sink("sw.sinks.files('parquett', 'o')", "sink-format", says="p.py:4"),
    *each(_files, "sink-format", "'', 'o'", "None, 'o'", "5, 'o'", "['parquet'], 'o'", "'PARQUET', 'o'"),
    *each(_files, "sink-format", "'delta', 'o'"),
    *each(_sink, "sink-path", "sw.sinks.delta(5)", "sw.sinks.delta('~/out')"),
    *each(_sink, "sink-keys", "sw.sinks.delta('o', keys=5)", "sw.sinks.delta('o', keys=['id', 'id'])"),
    *each(_sink, "sink-keys", "sw.sinks.delta('o', keys=[''])"),
    _sink("sw.sinks.delta('o', txnAppId='mine')", "sink-option"),
    _sink("sw.sinks.delta('o', keys='id', mergeSchema=True)", "sink-option"),
    _sink("sw.sinks.delta('o', mergeSchema=None)", "sink-option-value"),
    _sink("sw.sinks.delta('o'), output_mode='update'", "output-mode"),
    _sink("sw.sinks.delta('o', keys='id'), output_mode='complete'", "output-mode"),
    *each(_sink, "sink-path", "sw.sinks.iceberg(5)", "sw.sinks.iceberg('~/out')"),
    *each(_sink, "sink-table", "sw.sinks.iceberg('out')", "sw.sinks.iceberg('lake..out')", "sw.sinks.iceberg('')"),
    _sink("sw.sinks.iceberg('a/b', keys=5)", "sink-keys"),
    _sink("sw.sinks.iceberg('a/b', branch='main')", "sink-option"),
    _sink("sw.sinks.iceberg('a/b', keys='id', fanout=True)", "sink-option"),
    _sink("sw.sinks.iceberg('lake.out'), output_mode='update'", "output-mode"),
    _sink("sw.sinks.iceberg('a/b', keys='id'), output_mode='complete'", "output-mode"),
    *each(_files, "sink-path", "'parquet', None", "'parquet', 5", "'parquet', 0", "'parquet', True", "'parquet', ''"),
    *each(_files, "sink-path", "'parquet', '  '", "'parquet', b'o'", "'parquet', ['o']", "'parquet', {}"),
    *each(_files, "sink-path", "'parquet', object()", "'parquet', 'a\\0b'", "'parquet', '\\udcff'"),
    *each(_files, "sink-path", "'parquet', 'http://['", "'parquet', '~nouser/o'", "'parquet', 'file:///a%20b'"),
    *each(_files, "sink-path", "'parquet', 's3a://b/a?b'", "'parquet', 's3a://b/a#b'", "'parquet', 'FILE:/a#b'"),
    *each(_files, "pipeline-fails", "'parquet', 'o', 'more'", "'parquet', 'o', path='x'"),
    *each(_files, "sink-option", "'parquet', 'o', checkpointLocation='x'", "'parquet', 'o', Path='x'"),
    *each(_files, "sink-option", "'parquet', 'o', CHECKPOINTLOCATION='x'"),
    *each(_files, "sink-option-value", "'csv', 'o', sep=None", "'csv', 'o', sep=[';']", "'csv', 'o', sep={}"),
    *each(_files, "sink-option-value", "'csv', 'o', sep=b';'", "'csv', 'o', sep=object()"),
    _files("'csv', 'o', sep=';', header=True, limit=5, ratio=0.5", "stream-unknown", 4),
    _files("'parquet', pathlib.Path('o')", "stream-unknown", 4),
    _files("'parquet', pathlib.PurePosixPath('/data/o')", "stream-unknown", 4),
    _files("'parquet', 's3a://bucket/o'", "stream-unknown", 4),
)
