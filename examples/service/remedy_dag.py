"""Airflow: every hour, if a stream needs a remedy, plan it, ask a person, and apply it."""

from __future__ import annotations

import json
import subprocess

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import dag, task

FOLDER = "/srv/clicks"
STREAM = "per_page"


@dag(schedule="@hourly", catchup=False, max_active_runs=1)
def remedy() -> None:
    @task.short_circuit
    def goal() -> str | None:
        """The remedy that ``status`` names; ``None``, which ends the run of the DAG, if none is needed."""
        status = ["slackwater", "status", STREAM, "--format", "json"]
        done = subprocess.run(status, cwd=FOLDER, capture_output=True, text=True, check=False)
        [stream] = json.loads(done.stdout)["streams"]
        return stream["findings"][0].get("goal")

    plan = BashOperator(
        task_id="plan",
        cwd=FOLDER,
        bash_command=f"slackwater plan {{{{ ti.xcom_pull(task_ids='goal') }}}} {STREAM} --out plan.json --force",
    )
    approve = ApprovalOperator(task_id="approve", subject=f"Apply the plan for {STREAM}? The log of 'plan' shows it.")
    apply = BashOperator(task_id="apply", cwd=FOLDER, bash_command="slackwater apply plan.json --yes")
    goal() >> plan >> approve >> apply


remedy()
