"""Pipeline files: what Python cannot import, files without a usable pipeline, and arguments of wrong types.

A file that can be used ends with ``stream-unknown``: its streams are looked through, and none has the name asked for.
"""

from __future__ import annotations

from tests.bad_input.case import BINARY, LONG, Case, write

HEAD = "import pathlib\nimport slackwater as sw\np = sw.Pipeline('x')\n"
STREAM = "@p.stream(sink=sw.sinks.files('parquet', 'other/x'))\ndef a(spark): ...\n"
NOTEBOOK = "dbutils.widgets.get('a')\nspark.range(1).writeStream.start('b')\n"


def _file(text: str | bytes, error: str, exit_code: int = 2, says: str = "") -> Case:
    return Case("run p.py --stream nosuch", exit_code, error, write("p.py", text), says=says)


def _pipeline(arguments: str, error: str, exit_code: int = 2, says: str = "") -> Case:
    return _file(f"{HEAD.replace(chr(39) + 'x' + chr(39), arguments)}{STREAM}", error, exit_code, says)


def _stream(arguments: str, error: str, exit_code: int = 2, says: str = "") -> Case:
    sink = "" if "sink=" in arguments else "sink=sw.sinks.files('parquet', 'other/x'), "
    return _file(f"{HEAD}@p.stream({sink}{arguments})\ndef a(spark): ...\n", error, exit_code, says)


def _after(lines: str, error: str, exit_code: int = 2) -> Case:
    return _file(f"{HEAD}{STREAM}{lines}\n", error, exit_code)


def _exits(how: str) -> Case:
    text = f"import sys\n{HEAD}@p.stream(sink=sw.sinks.files('parquet', 'other/x'))\ndef a(spark): {how}\n"
    return Case("run p.py --until-caught-up", 2, "stream-fails", write("p.py", text), says="SystemExit", spark=True)


CASES = (
    # Functions that end Python: they are called when Spark has started
    _exits("sys.exit()"),
    _exits("raise SystemExit('enough')"),
    # What Python cannot import
    _file("", "pipeline-count"),
    _file("x = (\n", "pipeline-fails", says="p.py:1"),
    _file("def f(:\n", "pipeline-fails"),
    _file("  x = 1\n", "pipeline-fails"),
    _file("print 'hello'\n", "pipeline-fails"),
    _file(BINARY, "pipeline-fails"),
    _file(b"\xff\xfe", "pipeline-fails"),
    _file(b"x = '\xe9'\n", "pipeline-fails"),
    _file(b"# -*- coding: nosuch -*-\n", "pipeline-fails"),
    _file("x = 1\0\n", "pipeline-fails"),
    _file("(" * 5000, "pipeline-fails"),
    _file("x = " + "-" * 100_000 + "1\n", "pipeline-fails"),
    _file("x = " + "+".join(["1"] * 100_000) + "\n", "pipeline-fails"),
    _file("x = " + "9" * 5000 + "\n", "pipeline-fails"),
    _file("import no_such_module_here\n", "pipeline-import", says="p.py:1"),
    _file("from slackwater import nosuch\n", "pipeline-fails"),
    _file("\nfrom slackwater.sinks import hudi\n", "sink-unknown", says="p.py:2"),
    _file("import slackwater.nosuch\n", "pipeline-import"),
    _file("from . import x\n", "pipeline-fails"),
    # What fails while it is imported
    _file("\nraise ValueError('one\\ntwo')\n", "pipeline-fails", says="p.py:2"),
    _file("raise SystemExit\n", "pipeline-fails"),
    _file("raise SystemExit(0)\n", "pipeline-fails", says="p.py:1"),
    _file("import sys; sys.exit(3)\n", "pipeline-fails"),
    _file("exit()\n", "pipeline-fails"),
    _file("raise GeneratorExit\n", "pipeline-fails"),
    _file("class E(BaseException): ...\nraise E\n", "pipeline-fails"),
    _file("class E(Exception):\n    def __str__(self): raise TypeError\nraise E\n", "pipeline-fails"),
    _file("def f(): f()\nf()\n", "pipeline-fails"),
    _file("raise OSError(28, 'No space left on device')\n", "pipeline-fails"),
    _file("raise BrokenPipeError\n", "pipeline-fails"),
    _file("raise MemoryError\n", "pipeline-fails"),
    _file("1 / 0\n", "pipeline-fails"),
    _file("open('absent')\n", "pipeline-fails"),
    _file("open('a\\0b')\n", "pipeline-fails"),
    _file("import os; os.environ['x'] = 5\n", "pipeline-fails"),
    _file("assert False\n", "pipeline-fails"),
    _file("warnings\n", "pipeline-fails"),
    _file("raise Exception('[/bold] [red]')\n", "pipeline-fails"),
    _file("raise Exception('x' * 10**6)\n", "pipeline-fails"),
    # None, several, or none of its streams
    _file("x = 1\n", "pipeline-count", says="p.py"),
    Case("run p.py", 2, "program-kind", write("p.py", NOTEBOOK), says="spark, dbutils"),
    _file("from pyspark import pipelines as dp\n\n@dp.table\ndef a(): ...\n", "program-kind", says="spark-pipelines"),
    _file("# COMMAND ----------\nrows = spark.readStream.table('a')\n", "program-kind", says="code of a notebook"),
    _file("import slackwater as sw\np = sw.Pipeline\n", "pipeline-count"),
    _file("import slackwater as sw\npipelines = [sw.Pipeline('x')]\n", "pipeline-count"),
    _file(HEAD + "q = sw.Pipeline('y')\n" + STREAM, "pipeline-count", says="p.py"),
    _file(HEAD, "pipeline-empty", says="p.py"),
    _after("q = p", "stream-unknown", 4),
    _file(HEAD + STREAM + STREAM.replace("other/x", "out/y"), "stream-duplicate", says="p.py:6"),
    _file(HEAD + STREAM + STREAM.replace("x'", "x/../x/'").replace("def a", "def b"), "sink-shared", says="other/x"),
    # Arguments of a pipeline
    _pipeline("", "pipeline-fails"),
    _pipeline("''", "pipeline-name"),
    _pipeline("None", "pipeline-name"),
    _pipeline("5", "pipeline-name"),
    _pipeline("b'x'", "pipeline-name"),
    _pipeline("'watched'", "pipeline-reserved"),
    _pipeline("['x']", "pipeline-name"),
    _pipeline("pathlib.Path('x')", "pipeline-name"),
    _pipeline("'a/b'", "pipeline-name", says="p.py:3"),
    _pipeline("'..'", "pipeline-name"),
    _pipeline("'.hidden'", "pipeline-name"),
    _pipeline("'a b'", "pipeline-name"),
    _pipeline("'x\\n'", "pipeline-name"),
    _pipeline("'ü'", "pipeline-name"),
    _pipeline("'x\\0'", "pipeline-name"),
    _pipeline(f"'{LONG}'", "pipeline-name"),
    _pipeline("'x', 'y'", "pipeline-fails"),
    _pipeline("'x', nope=1", "pipeline-fails"),
    _pipeline("'x', connectors=5", "pipeline-connectors"),
    _pipeline("'x', connectors=None", "pipeline-connectors"),
    _pipeline("'x', connectors=[1]", "pipeline-connectors"),
    _pipeline("'x', connectors=['']", "pipeline-connectors"),
    _pipeline("'x', connectors={'kafka': 1}", "stream-unknown", 4),
    _pipeline("'x', connectors='kafka'", "stream-unknown", 4),
    # Arguments of a stream
    _file(f"{HEAD}@p.stream\ndef a(spark): ...\n", "pipeline-fails", says="p.py:4"),
    _file(f"{HEAD}@p.stream()\ndef a(spark): ...\n", "pipeline-fails"),
    _file(f"{HEAD}p.stream(sink=sw.sinks.files('csv', 'o'))(None)\n", "stream-function"),
    _file(f"{HEAD}p.stream(sink=sw.sinks.files('csv', 'o'))('a')\n", "stream-function"),
    _file(f"{HEAD}p.stream(sink=sw.sinks.files('csv', 'o'))(lambda spark: None)\n", "stream-name"),
    _file(f"{HEAD}p.stream(sink=sw.sinks.files('csv', 'o'), name='b')(lambda spark: 1)\n", "stream-unknown", 4),
    _file(
        f"{HEAD}import functools\np.stream(sink=sw.sinks.files('csv', 'o'))(functools.partial(print))\n", "stream-name"
    ),
    _stream("nope=1", "pipeline-fails"),
    _stream("name=''", "stream-name"),
    _stream("name=5", "stream-name"),
    _stream("name=0", "stream-name"),
    _stream("name=b'a'", "stream-name"),
    _stream("name='../a'", "stream-name", says="p.py:4"),
    _stream("name='a b'", "stream-name"),
    _stream("name='é'", "stream-name"),
    _stream(f"name='{LONG}'", "stream-name"),
    _stream("output_mode='update'", "output-mode", says="x/a"),
    _stream("output_mode='Append'", "output-mode"),
    _stream("output_mode=''", "output-mode"),
    _stream("output_mode=None", "output-mode"),
    _stream("output_mode=5", "output-mode"),
    _stream("output_mode=['append']", "output-mode"),
    _stream("partition_by=5", "partition-by"),
    _stream("partition_by=None", "partition-by"),
    _stream("partition_by=[1]", "partition-by"),
    _stream("partition_by=['']", "partition-by"),
    _stream("partition_by=''", "partition-by"),
    _stream("partition_by=[None]", "partition-by"),
    _stream("partition_by='day'", "stream-unknown", 4),
    _stream("partition_by=['day', 'hour']", "stream-unknown", 4),
    _stream("checkpoint=5", "checkpoint-path"),
    _stream("checkpoint=''", "checkpoint-path"),
    _stream("checkpoint='a\\0b'", "checkpoint-path"),
    _stream("checkpoint=['x']", "checkpoint-path"),
    _stream("checkpoint=b'x'", "checkpoint-path"),
    _stream("checkpoint=pathlib.Path('cp')", "stream-unknown", 4),
    # Triggers
    _stream("trigger=5", "trigger-interval", says="p.py:4"),
    _stream("trigger=0", "trigger-interval"),
    _stream("trigger=''", "trigger-interval"),
    _stream("trigger=['10 seconds']", "trigger-interval"),
    _stream("trigger=sw.triggers.once", "trigger-interval"),
    _stream("trigger=sw.triggers", "trigger-interval"),
    _stream("trigger={'processingTime': '1 second'}", "trigger-interval"),
    _stream("trigger='soon'", "trigger-interval"),
    _stream("trigger='10'", "trigger-interval"),
    _stream("trigger='10s'", "trigger-interval"),
    _stream("trigger='10 s'", "trigger-interval"),
    _stream("trigger='10 secs'", "trigger-interval"),
    _stream("trigger='5 parsecs'", "trigger-interval"),
    _stream("trigger='-1 seconds'", "trigger-interval"),
    _stream("trigger='1 month'", "trigger-interval"),
    _stream("trigger='1 minute -2 minutes'", "trigger-interval"),
    _stream("trigger='1.5 minutes'", "trigger-interval"),
    _stream("trigger='1 day, 2 hours'", "trigger-interval"),
    _stream("trigger='106751992 days'", "trigger-interval"),
    _stream("trigger='9' * 5000 + ' seconds'", "trigger-interval"),
    _stream("trigger='\\u0661\\u0660 seconds'", "trigger-interval"),
    _stream("trigger='10\\u00a0seconds'", "trigger-interval"),
    _stream("trigger=sw.triggers.processing_time('x')", "trigger-interval"),
    _stream("trigger=sw.triggers.processing_time(None)", "trigger-interval"),
    _stream("trigger=sw.triggers.processing_time()", "pipeline-fails"),
    _stream("trigger=sw.triggers.continuous('x')", "trigger-interval"),
    _stream("trigger=sw.triggers.available_now(1)", "pipeline-fails"),
    _stream("trigger='interval 1 minute 30.5 SECONDS'", "stream-unknown", 4),
    _stream("trigger='.5 seconds'", "stream-unknown", 4),
    _stream("trigger='1 day -2 hours'", "stream-unknown", 4),
    _stream("trigger='106751991 days'", "stream-unknown", 4),
    _stream("trigger=None", "stream-unknown", 4),
)
