"""Pipeline files: what Python cannot import, files without a usable pipeline, and arguments of wrong types.

A file that can be used ends with ``stream-unknown``: its streams are looked through, and none has the name asked for.
"""

from tests.bad_input.case import BINARY, LONG, Case, each, write

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
    *each(_file, "pipeline-fails", "def f(:\n", "  x = 1\n", "print 'hello'\n", BINARY, b"\xff\xfe", b"x = '\xe9'\n"),
    *each(_file, "pipeline-fails", b"# -*- coding: nosuch -*-\n", "x = 1\0\n", "(" * 5000),
    *each(_file, "pipeline-fails", "x = " + "-" * 100_000 + "1\n", "x = " + "+".join(["1"] * 100_000) + "\n"),
    *each(_file, "pipeline-fails", "x = " + "9" * 5000 + "\n"),
    _file("import no_such_module_here\n", "pipeline-import", says="p.py:1"),
    _file("from slackwater import nosuch\n", "pipeline-fails"),
    _file("\nfrom slackwater.sinks import hudi\n", "sink-unknown", says="p.py:2"),
    _file("import slackwater.nosuch\n", "pipeline-import"),
    _file("from . import x\n", "pipeline-fails"),
    # What fails while it is imported
    _file("\nraise ValueError('one\\ntwo')\n", "pipeline-fails", says="p.py:2"),
    _file("raise SystemExit\n", "pipeline-fails"),
    _file("raise SystemExit(0)\n", "pipeline-fails", says="p.py:1"),
    *each(_file, "pipeline-fails", "import sys; sys.exit(3)\n", "exit()\n", "raise GeneratorExit\n"),
    *each(_file, "pipeline-fails", "class E(BaseException): ...\nraise E\n"),
    *each(_file, "pipeline-fails", "class E(Exception):\n    def __str__(self): raise TypeError\nraise E\n"),
    *each(_file, "pipeline-fails", "def f(): f()\nf()\n", "raise OSError(28, 'No space left on device')\n"),
    *each(_file, "pipeline-fails", "raise BrokenPipeError\n", "raise MemoryError\n", "1 / 0\n", "open('absent')\n"),
    *each(_file, "pipeline-fails", "open('a\\0b')\n", "import os; os.environ['x'] = 5\n", "assert False\n"),
    *each(_file, "pipeline-fails", "warnings\n", "raise Exception('[/bold] [red]')\n"),
    *each(_file, "pipeline-fails", "raise Exception('x' * 10**6)\n"),
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
    *each(_pipeline, "pipeline-name", "''", "None", "5", "b'x'"),
    _pipeline("'watched'", "pipeline-reserved"),
    *each(_pipeline, "pipeline-name", "['x']", "pathlib.Path('x')"),
    _pipeline("'a/b'", "pipeline-name", says="p.py:3"),
    *each(_pipeline, "pipeline-name", "'..'", "'.hidden'", "'a b'", "'x\\n'", "'ü'", "'x\\0'", f"'{LONG}'"),
    *each(_pipeline, "pipeline-fails", "'x', 'y'", "'x', nope=1"),
    *each(_pipeline, "pipeline-connectors", "'x', connectors=5", "'x', connectors=None", "'x', connectors=[1]"),
    *each(_pipeline, "pipeline-connectors", "'x', connectors=['']"),
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
    *each(_stream, "stream-name", "name=''", "name=5", "name=0", "name=b'a'"),
    _stream("name='../a'", "stream-name", says="p.py:4"),
    *each(_stream, "stream-name", "name='a b'", "name='é'", f"name='{LONG}'"),
    _stream("output_mode='update'", "output-mode", says="x/a"),
    *each(_stream, "output-mode", "output_mode='Append'", "output_mode=''", "output_mode=None", "output_mode=5"),
    *each(_stream, "output-mode", "output_mode=['append']"),
    *each(_stream, "partition-by", "partition_by=5", "partition_by=None", "partition_by=[1]", "partition_by=['']"),
    *each(_stream, "partition-by", "partition_by=''", "partition_by=[None]"),
    _stream("partition_by='day'", "stream-unknown", 4),
    _stream("partition_by=['day', 'hour']", "stream-unknown", 4),
    *each(_stream, "checkpoint-path", "checkpoint=5", "checkpoint=''", "checkpoint='a\\0b'", "checkpoint=['x']"),
    *each(_stream, "checkpoint-path", "checkpoint=b'x'"),
    _stream("checkpoint=pathlib.Path('cp')", "stream-unknown", 4),
    # Triggers
    _stream("trigger=5", "trigger-interval", says="p.py:4"),
    *each(_stream, "trigger-interval", "trigger=0", "trigger=''", "trigger=['10 seconds']", "trigger=sw.triggers.once"),
    *each(_stream, "trigger-interval", "trigger=sw.triggers", "trigger={'processingTime': '1 second'}"),
    *each(_stream, "trigger-interval", "trigger='soon'", "trigger='10'", "trigger='10s'", "trigger='10 s'"),
    *each(_stream, "trigger-interval", "trigger='10 secs'", "trigger='5 parsecs'", "trigger='-1 seconds'"),
    *each(_stream, "trigger-interval", "trigger='1 month'", "trigger='1 minute -2 minutes'", "trigger='1.5 minutes'"),
    *each(_stream, "trigger-interval", "trigger='1 day, 2 hours'", "trigger='106751992 days'"),
    *each(_stream, "trigger-interval", "trigger='9' * 5000 + ' seconds'", "trigger='\\u0661\\u0660 seconds'"),
    *each(_stream, "trigger-interval", "trigger='10\\u00a0seconds'", "trigger=sw.triggers.processing_time('x')"),
    *each(_stream, "trigger-interval", "trigger=sw.triggers.processing_time(None)"),
    _stream("trigger=sw.triggers.processing_time()", "pipeline-fails"),
    _stream("trigger=sw.triggers.continuous('x')", "trigger-interval"),
    _stream("trigger=sw.triggers.available_now(1)", "pipeline-fails"),
    _stream("trigger='interval 1 minute 30.5 SECONDS'", "stream-unknown", 4),
    _stream("trigger='.5 seconds'", "stream-unknown", 4),
    _stream("trigger='1 day -2 hours'", "stream-unknown", 4),
    _stream("trigger='106751991 days'", "stream-unknown", 4),
    _stream("trigger=None", "stream-unknown", 4),
)
