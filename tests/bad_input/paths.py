"""Paths: files for folders and the other way round, missing, unreadable, pipes, loops, and names that are too long."""

import json

from tests.bad_input.case import (
    CHECKPOINT,
    LEDGER,
    LONG,
    STREAM_FILE,
    Case,
    env,
    fifo,
    folder,
    forbid,
    link,
    loop,
    refused,
    remove,
    write,
)

STREAM = json.dumps({"id": "a", "generation": 1, "sink": {"kind": "files", "format": "parquet", "path": "out"}})

LONG_LABEL = f"{'h' * 64}.example"

MADE_UP_STORES = "from slackwater import Pipeline, sinks\np = Pipeline('p')\n"

CASES = (
    # A home on a store needs a ledger, and the store has to be known
    *(
        Case(f"{command} --home {place}", 2, code)
        for command in ("status", "run clicks.py", "plan resume per_page", "prune --keep 1 --yes")
        for place, code in (
            ("hdfs://host/home", "home-needs-ledger"),
            ("hdfs:/home", "home-needs-ledger"),
            ("s3a://bucket/home", "home-needs-ledger"),
            ("hdsf://host/home", "unknown-scheme"),
        )
    ),
    Case("status", 2, "home-needs-ledger", env(SLACKWATER_HOME="hdfs://host/home")),
    Case("status", 2, "unknown-scheme", write("slackwater.toml", 'home = "hdsf://host/home"')),
    Case("run clicks.py", 2, "home-store", env(SLACKWATER_HOME="memory://home", SLACKWATER_LEDGER="ledger.db")),
    Case("ledger --home file:///absent/home", 4, "ledger-missing"),
    Case("status", 2, "ledger-url", env(SLACKWATER_LEDGER="hdfs:/ledger.db")),
    *refused(2, "usage", "init hdfs://host/project", "demo --folder hdfs://host/project"),
    *refused(2, "usage", "plan resume per_page --out s3://bucket/plan.json"),
    Case("inspect hdfs://no.such.host/checkpoint", 9, "store-unreachable", says="no.such.host:9870"),
    Case("inspect hdfs:///checkpoint", 2, "location", says="HADOOP_CONF_DIR"),
    # What cannot be looked for is not called absent
    Case("plan rebuild per_page", 9, "source-inaccessible", forbid("clicks")),
    Case("status --format=json --no-such-option", 2, "usage", says='{"error": '),
    Case("no-such-verb --format json", 2, "usage", says='{"error": '),
    Case("status --format json a b c", 2, "usage", says='{"error": '),
    Case("run m.py", 2, "pipeline-count", write("m.py", "x = 1"), says=".writeStream"),
    Case(
        "run m.py",
        2,
        "pipeline-fails",
        write("m.py", "from pyspark.sql import functions as F\nc = F.expr('1')"),
        says="inside the stream's function",
    ),
    Case(("status", "word " * 20_000), 4, "stream-unknown"),
    Case("status", 3, None, remove(LEDGER), write(STREAM_FILE, STREAM), says="slackwater plan resume clicks/per_page"),
    Case("ledger", 4, "ledger-lost", remove(LEDGER), write(STREAM_FILE, STREAM), says="slackwater plan resume"),
    # inspect
    *refused(4, "no-checkpoint", "inspect absent", "inspect ./absent"),
    *refused(4, "not-a-checkpoint", "inspect /", "inspect .", "inspect clicks.py", "inspect clicks", "inspect out"),
    Case("inspect empty", 4, "not-a-checkpoint", folder("empty")),
    Case("inspect a-fifo", 4, "not-a-checkpoint", fifo("a-fifo")),
    Case("inspect a-loop", 4, "no-checkpoint", loop("a-loop")),
    Case("inspect a-link", 4, "no-checkpoint", link("a-link", "nowhere")),
    Case("inspect a-loop/below", 4, "no-checkpoint", loop("a-loop")),
    *refused(4, "not-a-checkpoint", "inspect /dev/null", "inspect /dev/zero"),
    *refused(4, "no-checkpoint", "inspect clicks.py/below", f"inspect ./{LONG}", f"inspect /{'d/' * 3000}x"),
    *refused(4, "no-checkpoint", "inspect ~nouser/checkpoint"),
    Case(f"inspect {CHECKPOINT}/offsets", 4, "not-a-checkpoint", says="inside a checkpoint"),
    Case("inspect .slackwater/streams/clicks/per_page/checkpoints", 4, "not-a-checkpoint", says="parent"),
    *refused(4, "not-a-checkpoint", "inspect file:///absent", "inspect file:", "inspect file://%00"),
    *refused(2, "unknown-scheme", "inspect nosuch://bucket/x", "inspect x-y.z+1://bucket"),
    Case("inspect hdsf://host/x", 2, "unknown-scheme", says="did you mean hdfs:?"),
    *(
        Case(
            "run m.py", 2, "unknown-scheme", write("m.py", f"{MADE_UP_STORES}@p.stream({arguments})\ndef s(_): pass\n")
        )
        for arguments in (
            "sink=sinks.noop(), checkpoint='hdsf://host/x'",
            "sink=sinks.files('json', 'hdsf://host/x')",
            "sink=sinks.delta('hdsf://host/x')",
        )
    ),
    Case("inspect file:///a%00b", 2, "location"),
    Case("status", 2, "location", write("slackwater.toml", "home = 'file:///a%00b'")),
    *(
        Case(f"inspect {uri}", 2, "location")
        for uri in (
            "reference://a/b",
            "github://a/b",
            "dir://a",
            "jupyter://a",
            "generic://a/b",
            "gist://a",
            "cached://a",
        )
    ),
    Case(f"inspect ftp://{LONG_LABEL}/a", 2, "location"),
    Case(f"inspect http://{LONG_LABEL}/a", 9, "store-unreachable"),
    Case(f"run clicks.py --metrics-port 0 --metrics-host {LONG_LABEL}", 9, "metrics-port"),
    *refused(2, "location", "inspect http://[", "inspect file://["),
    Case("inspect memory://absent", 4, "not-a-checkpoint"),
    *refused(4, "no-such-file", "inspect per_page --raw absent", "inspect per_page --raw offsets"),
    *refused(4, "no-such-file", "inspect per_page --raw ../../stream.json", "inspect per_page --raw /etc/passwd"),
    *refused(4, "no-such-file", f"inspect per_page --raw {LONG}"),
    Case("inspect per_page --raw a-fifo", 4, "no-such-file", fifo(f"{CHECKPOINT}/a-fifo")),
    Case("inspect per_page --raw a-loop", 4, "no-such-file", loop(f"{CHECKPOINT}/a-loop")),
    Case(f"inspect {CHECKPOINT}", 9, "store-unreachable", forbid(CHECKPOINT)),
    Case("inspect per_page --raw offsets/5", 9, "file-inaccessible", forbid(f"{CHECKPOINT}/offsets/5")),
    # The pipeline file
    Case("plan rebuild per_page", 5, "source-files-lost", remove("clicks")),
    Case("run clicks.py -- --day 2026-01-31", 2, "usage"),
    *refused(2, "pipeline-absent", "run absent.py", "run absent", "run absent.module", "run .absent", "run .."),
    *refused(2, "pipeline-absent", "run a..b", "run sys"),
    Case("run json.decoder", 2, "pipeline-count"),
    *refused(2, "pipeline-absent", "run clicks", "run out"),
    Case("run a.py", 2, "pipeline-absent", folder("a.py")),
    Case("run a.py", 2, "pipeline-absent", fifo("a.py")),
    Case("run a.py", 2, "pipeline-absent", loop("a.py")),
    Case("run a.py", 2, "pipeline-absent", link("a.py", "nowhere.py")),
    *refused(2, "pipeline-absent", "run clicks.py/a.py", "run ~nouser/a.py", f"run {LONG}.py", f"run {LONG}"),
    Case("run a.txt", 2, "pipeline-unreadable", write("a.txt", "x = 1\n")),
    Case("run /dev/null", 2, "pipeline-absent"),
    Case("run a.py", 2, "pipeline-unreadable", write("a.py", "x = 1\n"), forbid("a.py")),
    Case("plan rebuild per_page --pipeline absent.py", 2, "pipeline-absent"),
    Case("plan rebuild per_page --pipeline clicks", 2, "pipeline-absent"),
    Case(f"plan rebuild per_page --pipeline {LONG}", 2, "pipeline-absent"),
    Case("plan rebuild per_page", 2, "pipeline-absent", remove("clicks.py")),
    Case("plan rebuild per_page", 2, "pipeline-absent", folder("clicks.py")),
    Case("plan rebuild per_page", 2, "pipeline-unreadable", forbid("clicks.py")),
    # The home
    Case("status --home absent", 0, None),
    *refused(4, "ledger-missing", "status per_page --home absent", "ledger --home absent"),
    *refused(4, "ledger-missing", "offsets per_page --home absent", "stop per_page --home absent"),
    *refused(4, "ledger-missing", "plan rebuild per_page --home absent", "apply plan.json --yes --home absent"),
    Case("inspect per_page --home absent", 4, "no-checkpoint"),
    Case("status --home clicks.py", 2, "home-is-file", says="/clicks.py"),
    *refused(2, "home-is-file", "status --home clicks.py/below", "run clicks.py --home clicks.py"),
    Case("status --home a-fifo", 2, "home-is-file", fifo("a-fifo")),
    Case("status --home a-loop", 2, "home-unusable", loop("a-loop")),
    *refused(2, "home-unusable", f"status --home {LONG}", f"status --home /{'d/' * 3000}x"),
    *refused(2, "home-unusable", "status --home ~nouser/home", "status --home ~nouser", "run clicks.py --home ~nouser"),
    *refused(2, "home-unusable", "inspect per_page --home ~nouser"),
    Case("status --home /dev/null", 2, "home-is-file"),
    Case("status", 0, None, remove(".slackwater")),
    # The ledger file
    Case("status", 9, "ledger-unreachable", folder(LEDGER)),
    Case("ledger", 9, "ledger-unreachable", folder(LEDGER)),
    Case("status", 0, None, loop(LEDGER)),
    Case("ledger", 4, "ledger-missing", link(LEDGER, "nowhere")),
    # Names and texts of a home that no database takes
    Case("ledger", 4, "ledger-missing", remove(LEDGER), write(".slackwater/streams/\udcff/s/stream.json", STREAM)),
    *(
        Case(
            "plan resume per_page",
            3,
            "stream-file-damaged",
            remove(LEDGER),
            write(STREAM_FILE, STREAM.replace(*change)),
            creates=(LEDGER,),
        )
        for change in (('"a"', '"\\ud800"'), ('"out"', '"\\ud800"'), ('"out"', '"a\\u0000"'))
    ),
    # A home that is deep: not by recursion, and with a path that SQLite takes
    Case(f"run clicks.py --home {'d/' * 1100}home", 2, "ledger-url"),
    # Names of folders of a home that are files
    Case("status", 5, None, write(".slackwater/streams")),
    # The demo's folder
    *refused(2, "demo-folder", "demo --folder clicks.py", "demo --folder clicks"),
    Case("demo --folder a-loop", 2, "demo-folder", loop("a-loop")),
    Case("demo --folder a-fifo", 2, "demo-folder", fifo("a-fifo")),
    *refused(2, "demo-folder", f"demo --folder {LONG}", "demo --folder clicks.py/below"),
)
