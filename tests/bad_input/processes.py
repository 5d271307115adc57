"""What a process is started with: no stdin, no working directory, another user's files, a full disk, odd encodings."""

from tests.bad_input.case import (
    LEDGER,
    STREAM_FILE,
    Case,
    cd,
    closed,
    ctrl_c_when_journal_has,
    env,
    folder,
    forbid,
    in_a_process,
    of_somebody_else,
    removed_directory,
    windowed,
    write,
)

NOBODY_LISTENS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
}

CASES = (
    Case("apply plan.json", 2, "unconfirmed", closed(0)),
    Case("status", 0, None, closed(0)),
    Case("status nosuch", 4, "stream-unknown", closed(0)),
    Case("status", 9, "working-directory", removed_directory()),
    Case("run clicks.py", 9, "working-directory", removed_directory()),
    Case("inspect per_page", 9, "working-directory", removed_directory()),
    Case("apply plan.json --yes", 9, "working-directory", removed_directory()),
    Case("demo", 9, "working-directory", removed_directory()),
    Case("status", 9, "working-directory", folder("\udcff"), cd("\udcff")),
    Case("run ../clicks.py", 9, "working-directory", folder("\udcff"), cd("\udcff")),
    Case("status", 9, "home-inaccessible", folder("below"), cd("below"), forbid("below")),
    Case("run clicks.py", 9, "home-inaccessible", folder("below"), cd("below"), forbid("below")),
    Case("status", 9, "home-inaccessible", of_somebody_else(".slackwater")),
    Case("ledger", 9, "home-inaccessible", of_somebody_else(".slackwater")),
    Case("run clicks.py", 9, "home-inaccessible", of_somebody_else(".slackwater")),
    Case("offsets per_page", 9, "home-inaccessible", of_somebody_else(".slackwater")),
    Case("plan rebuild per_page", 9, "home-inaccessible", of_somebody_else(".slackwater")),
    Case("inspect per_page", 9, "home-inaccessible", of_somebody_else(".slackwater")),
    Case("status --home elsewhere/home", 9, "home-inaccessible", folder("elsewhere"), forbid("elsewhere")),
    Case("status é", 4, "stream-unknown", in_a_process(PYTHONIOENCODING="ascii")),
    Case("status", 0, None, in_a_process(PYTHONIOENCODING="ascii")),
    Case("ledger per_page", 0, None, in_a_process(PYTHONIOENCODING="ascii")),
    Case("plan rebuild per_page", 0, None, in_a_process(PYTHONIOENCODING="ascii")),
    Case("status", 0, None, in_a_process(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")),
    Case("inspect s3://no-such-bucket/x", 9, "store-unreachable", in_a_process(AWS_EC2_METADATA_DISABLED="true")),
    Case(
        "inspect s3://b/x",
        9,
        "store-unreachable",
        in_a_process(AWS_EC2_METADATA_DISABLED="true", AWS_ACCESS_KEY_ID="x"),
    ),
    Case("inspect s3://b/x", 9, "store-unreachable", in_a_process(**NOBODY_LISTENS)),
    Case("inspect s3://", 9, "store-unreachable", in_a_process(AWS_EC2_METADATA_DISABLED="true")),
    Case("run clicks.py", 9, "java-missing", env(JAVA_HOME="/nonexistent")),
    Case("run clicks.py", 9, "java-missing", env(JAVA_HOME="clicks.py")),
    Case("connectors fetch kafka --spark 9.9", 9, "connector-not-locked", env(JAVA_HOME="/nonexistent")),
    *(
        # Known when Spark is about to start: the stream and its lease have been registered by then.
        Case(
            f"run clicks.py --conf spark.driver.memory={size}",
            2,
            "spark-setting",
            creates=(LEDGER, STREAM_FILE),
            says="memory of this machine",
        )
        for size in ("900g", "1000000000m", "900T")
    ),
    *(
        # Line 1: the new generation is being built; line 3: batches are being replayed.
        Case(
            ("apply", "plan.json", "--yes", "--conf", "spark.sql.shuffle.partitions=1"),
            130,
            None,
            windowed(),
            ctrl_c_when_journal_has(line),
            says="interrupted",
            spark=True,
            followed=True,
        )
        for line in (1, 3)
    ),
    Case(
        "run p.py --stream nosuch", 2, "pipeline-fails", write("p.py", "raise Exception('\\udcff')\n"), in_a_process()
    ),
)
