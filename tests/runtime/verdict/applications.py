"""The application that is equal to a pipeline file of the table: the same code, which starts its query itself."""

from __future__ import annotations

import ast

IMPORT = "import slackwater as sw\n"
PIPELINE = 'pipeline = sw.Pipeline("web")\n'
DECORATED = "@pipeline.stream("
TRIGGERS = {"'5 seconds'": "processingTime='5 seconds'"}


def application(pipeline: str) -> str:
    writer = "\n".join(_writer(node) for node in ast.parse(pipeline).body if isinstance(node, ast.FunctionDef))
    assert writer.strip(), "a pipeline file of the table has a stream"
    lines = pipeline.replace(IMPORT, "from pyspark.sql import SparkSession\n").replace(PIPELINE, "").splitlines()
    code = "\n".join(line for line in lines if not line.startswith(DECORATED))
    assert "sw." not in code, code
    return f"{code}\n\n{writer}"


def _writer(function: ast.FunctionDef) -> str:
    """The call that writes the stream of this function; an empty string for a function that is no stream."""
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    found = next((one for one in calls if ast.unparse(one.func) == "pipeline.stream"), None)
    if found is None:
        return ""
    given = {keyword.arg: keyword.value for keyword in found.keywords}
    mode, sink = ast.unparse(given["output_mode"]), given["sink"]
    assert isinstance(sink, ast.Call)
    arguments = [ast.unparse(one) for one in sink.args]
    kind = ast.unparse(sink.func).removeprefix("sw.sinks.")
    if kind == "files":
        written = f".format({arguments[0]}).option('path', {arguments[1]})"
    else:
        assert kind == "foreach_batch", kind
        written = f".foreachBatch({arguments[0]})"
    if "trigger" in given:
        written += f".trigger({TRIGGERS[ast.unparse(given['trigger'])]})"
    name = repr(function.name)
    return (
        f"{function.name}(SparkSession.builder.getOrCreate()).writeStream.queryName({name}).outputMode({mode}){written}"
        ".option('checkpointLocation', 'checkpoint').start().awaitTermination()\n"
    )
