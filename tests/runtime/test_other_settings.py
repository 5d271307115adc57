"""The settings of a session while a query is built under those of another run, and afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException

from slackwater.core.errors import PipelineError
from slackwater.core.program import InputShape, OperatorShape, Program
from slackwater.core.verdict import OtherSetting
from slackwater.runtime.session.settings import changed_settings, effective_settings, only_settings, replace_settings

ZONE, ANSI, LEAST, URL = "spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.app.least", "spark.app.url"
LOGIN = "postgresql://u:pw@host/db"
DEFAULTS = {ZONE: "UTC", ANSI: "true"}
RECORDED = {ANSI: "true", LEAST: "3", ZONE: "UTC"}


class FakeConf(dict[str, str]):
    rejected: str | None = None

    def set(self, key: str, value: str) -> None:
        if value == self.rejected:
            raise IllegalArgumentException(f"{key} cannot be {value}")
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)

    remove = unset
    contains = dict.__contains__


def _of_jvm(conf: FakeConf) -> SimpleNamespace:
    """The same settings as an object of the JVM has them."""
    entries = SimpleNamespace(mkString=lambda between: between.join(f"{key} -> {conf[key]}" for key in conf))
    return SimpleNamespace(
        getConfString=lambda key: conf.get(key) or DEFAULTS[key],
        isModifiable=DEFAULTS.__contains__,
        getAllConfs=lambda: entries,
    )


class FakeSqlConf(SimpleNamespace):
    def __call__(self) -> SimpleNamespace:
        return _of_jvm(FakeConf())


class FakeSession:
    """A session of Spark, as far as settings are concerned."""

    def __init__(self, settings: Mapping[str, str], application: Mapping[str, str] | None = None) -> None:
        self.conf = FakeConf(settings)
        self.application = FakeConf(settings if application is None else application)
        spark = SimpleNamespace(
            internal=SimpleNamespace(config=SimpleNamespace(ConfigEntry=SimpleNamespace(findEntry=DEFAULTS.get))),
            sql=SimpleNamespace(
                internal=SimpleNamespace(SQLConf=FakeSqlConf(isStaticConfigKey=frozenset[str]().__contains__))
            ),
        )
        context = SimpleNamespace(conf=lambda: self.application)
        self.sparkContext = SimpleNamespace(
            _jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark))),
            _jsc=SimpleNamespace(sc=lambda: context),
            environment=dict[str, str](),
        )
        state = SimpleNamespace(conf=lambda: _of_jvm(self.conf))
        self._jsparkSession = SimpleNamespace(sessionState=lambda: state)


def built_in(session: FakeSession) -> Any:
    """The query of a function that reads two settings of its own."""
    missing = {LEAST, URL} - session.conf.keys()
    if missing:
        raise PipelineError("stream-fails", f"{missing} not set", hint="set it")
    return SimpleNamespace(
        frame=SimpleNamespace(sparkSession=session),
        program=_program(session.conf[LEAST]),
        definition=SimpleNamespace(settings={}),
    )


def _program(least: str) -> Program:
    return Program(operators=(OperatorShape("aggregate", inputs=(InputShape("source0", (f"n > {least}",)),)),))


def _judge(session: Any, build: Callable[[Any], Any] = built_in) -> tuple[OtherSetting, ...]:
    return only_settings(built_in(session), _program("3"), RECORDED, lambda built: build(built.frame.sparkSession))


def test_a_session_has_all_its_settings_again_also_those_with_a_secret() -> None:
    """A stream that starts by ``--accept``, and the next stream of the run, are built in this session."""
    settings = {LEAST: "5", URL: LOGIN}
    session = FakeSession(settings)

    assert _judge(session) == (OtherSetting(LEAST, "3", "5"),)

    assert (session.conf, session.application) == (settings, settings), "no default is set that nobody has set"


def test_settings_of_one_stream_do_not_become_those_of_the_application() -> None:
    """From it the session of the next stream takes its own."""
    of_application = {LEAST: "4", URL: LOGIN}
    session = FakeSession({**of_application, LEAST: "5"}, of_application)

    assert _judge(session)

    assert session.conf[LEAST] == "5"
    assert session.application == of_application


def test_what_the_function_itself_sets_is_restored() -> None:
    settings = {LEAST: "5", URL: LOGIN, ZONE: "Asia/Tokyo"}

    def build(session: FakeSession) -> Any:
        session.conf.update({ZONE: "Europe/Berlin", "spark.sql.shuffle.partitions": "7"})
        return built_in(session)

    session = FakeSession(settings)

    assert _judge(session, build)

    assert session.conf == settings


def test_a_recorded_value_that_spark_rejects_stops_nothing() -> None:
    settings = {LEAST: "5", URL: LOGIN, ZONE: "Asia/Tokyo"}
    session = FakeSession(settings)
    session.conf.rejected = RECORDED[ZONE]

    assert _judge(session) == ()

    assert (session.conf, session.application) == (settings, settings)


@pytest.mark.parametrize("recorded", [{}, {URL: "postgresql://host/db"}])
def test_a_value_with_a_secret_stays_in_a_replay(recorded: dict[str, str]) -> None:
    """It is not recorded, so that no later replacement could bring it back."""
    session: Any = FakeSession({LEAST: "5", URL: LOGIN})
    present = effective_settings(session)
    before = {**RECORDED, **recorded}

    replace_settings(session, before)
    assert (session.conf[LEAST], session.conf[URL], session.application[URL]) == ("3", LOGIN, LOGIN)
    replace_settings(session, present)

    assert (session.conf[LEAST], session.conf[URL], session.application[URL]) == ("5", LOGIN, LOGIN)
    assert changed_settings(session, before) == {LEAST: ("3", "5")}


def test_a_variable_of_executors_is_a_setting_that_a_start_can_set_again() -> None:
    session: Any = FakeSession({})
    session.sparkContext.environment["RATE"] = "3"

    def built(given: Any) -> Any:
        program = Program(operators=(OperatorShape("aggregate"),), environment={"TZ": "UTC"} | _given(given))
        return SimpleNamespace(
            frame=SimpleNamespace(sparkSession=given), program=program, definition=SimpleNamespace(settings={})
        )

    def _given(given: Any) -> dict[str, str]:
        return {f"spark.executorEnv.{name}": value for name, value in given.sparkContext.environment.items()}

    now = built(session)
    kept = replace(now.program, environment={"TZ": "UTC", "spark.executorEnv.RATE": "2"})
    found = only_settings(
        now, kept, {ANSI: "true", ZONE: "UTC", "spark.executorEnv.RATE": "2"}, lambda _: built(session)
    )
    assert found == (OtherSetting("spark.executorEnv.RATE", "2", "3"),)
    assert session.sparkContext.environment == {"RATE": "3"}
    assert session.conf == {}
