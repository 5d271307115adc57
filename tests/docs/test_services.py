"""The recipes of docs/guides/service.md: manifests by the operators' own schemas, and each command by its parser."""

import ast
import json
import lzma
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from slackwater.cli.main import make_parser
from slackwater.cli.verbs.run.supervision import REPEATED_BY_A_RESTART

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "examples" / "service"
SCHEMAS = ROOT / "tests" / "data" / "kubernetes"
OPERATORS = {"kubeflow": "sparkoperator.k8s.io-v1beta2", "apache": "spark.apache.org-v1"}


def _strict(schema: Any) -> Any:
    """The schema with unknown fields as errors: a cluster would drop them silently."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: _strict(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        parts |= {"additionalProperties": False}
    return parts


def _manifest(name: str) -> Any:
    return yaml.safe_load((SERVICE / f"{name}.yaml").read_text())


def _check(manifest: Any, name: str) -> None:
    schema = json.loads(lzma.decompress((SCHEMAS / f"{OPERATORS[name]}.json.xz").read_bytes()))
    assert (manifest["apiVersion"], manifest["kind"]) == (OPERATORS[name].replace("-", "/"), "SparkApplication")
    jsonschema.validate(manifest["spec"], _strict(schema["properties"]["spec"]))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_manifest_is_valid_by_the_schema_of_its_operator(name: str) -> None:
    _check(_manifest(name), name)
    unknown = _manifest(name)
    unknown["spec"]["gracePeriod"] = 600
    with pytest.raises(jsonschema.ValidationError, match="gracePeriod"):
        _check(unknown, name)


def _commands() -> Iterator[tuple[str, list[str]]]:
    kubeflow, apache, deployment = (_manifest(name)["spec"] for name in ("kubeflow", "apache", "deployment"))
    [driver] = deployment["template"]["spec"]["containers"]
    yield "deployment", [*driver["command"], *driver["args"]]
    yield "kubeflow", ["slackwater", *kubeflow["arguments"]]
    yield "apache", ["slackwater", *apache["driverArgs"]]
    [pod] = apache["driverSpec"]["podTemplateSpec"]["spec"]["containers"]
    for name, container in (("kubeflow", kubeflow["driver"]), ("apache", pod)):
        yield f"{name} preStop", container["lifecycle"]["preStop"]["exec"]["command"]
    for name, pattern in (
        ("slackwater.service", "ExecStart=.*/(slackwater .*)"),
        ("slackwater.cron", "bin/(slackwater .*) >>"),
        ("check.yml", "run: (slackwater .*)"),
    ):
        yield name, shlex.split(_line(name, pattern))
    dag = (SERVICE / "remedy_dag.py").read_text()
    for number, text in enumerate(re.findall(r'bash_command=f?"(slackwater .*)"', dag)):
        yield f"dag {number}", shlex.split(re.sub(r"\{+ .*? \}+", "rebuild", text).replace("{STREAM}", "per_page"))


def _line(name: str, pattern: str) -> str:
    found = re.search(pattern, (SERVICE / name).read_text())
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in _commands()])
def test_the_parser_takes_each_command(words: list[str]) -> None:
    program, *arguments = words
    assert program == "slackwater"
    make_parser(arguments).parse_args(arguments)


def test_a_stop_before_sigterm_ends_within_the_grace_period() -> None:
    kubeflow, apache = (_manifest(name)["spec"] for name in OPERATORS)
    pod = apache["driverSpec"]["podTemplateSpec"]["spec"]
    for grace, container in (
        (kubeflow["driver"]["terminationGracePeriodSeconds"], kubeflow["driver"]),
        (pod["terminationGracePeriodSeconds"], pod["containers"][0]),
    ):
        assert int(container["lifecycle"]["preStop"]["exec"]["command"][-1].removesuffix("s")) < grace


def test_systemd_starts_nothing_again_that_would_be_refused_again() -> None:
    codes = _line("slackwater.service", "RestartPreventExitStatus=(.*)").split()
    assert {int(code) for code in codes} == REPEATED_BY_A_RESTART


def test_the_dag_is_python() -> None:
    ast.parse((SERVICE / "remedy_dag.py").read_text())
