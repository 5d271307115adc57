"""``slackwater.toml`` and ``SLACKWATER_*``: what cannot be parsed, unknown keys, and values of wrong types."""

from tests.bad_input.case import BINARY, DEEP, LONG, Case, cd, each, env, fifo, folder, forbid, loop, write

FILE = "slackwater.toml"


def _file(content: str | bytes, error: str) -> Case:
    return Case("status", 2, error, write(FILE, content), says=FILE)


def _ledger(address: str, error: str) -> Case:
    return Case("status", 2, error, env(SLACKWATER_LEDGER=address))


CASES = (
    *each(_file, "settings-unreadable", "home =\n", "home = 'a\n", "home = a\n", "[spark\n"),
    *each(_file, "settings-unreadable", "home = 'a'\nhome = 'b'\n", BINARY, b"home = '\xff'\n"),
    *each(_file, "settings-unreadable", f"connectors = {DEEP}\n", f"restarts = {'9' * 5000}\n"),
    *each(_file, "settings-unreadable", f"restarts = 0x{'f' * 5000}\n", f"[spark]\n'spark.x' = 0x{'f' * 5000}\n"),
    *each(_file, "settings-unreadable", f"a{'.a' * 100_000} = 1\n", f"a{'.a' * 30_000} = 1\n"),
    *each(_file, "settings-unreadable", "'a b'" + ".'a b'" * 9_000 + " = 1\n"),
    Case("status", 2, "settings-unreadable", write(FILE, "home = 'a'\n"), forbid(FILE)),
    Case("status", 2, "settings-unreadable", folder(FILE)),
    Case("status", 2, "settings-unreadable", fifo(FILE)),
    Case("status", 2, "settings-unreadable", loop(FILE)),
    Case("run clicks.py", 2, "settings-unreadable", write(FILE, "{")),
    Case("apply plan.json --yes", 2, "settings-unreadable", write(FILE, "{")),
    Case("demo", 2, "settings-unreadable", write(FILE, "{")),
    Case("connectors list", 2, "settings-unreadable", write(FILE, "{")),
    Case("inspect per_page", 2, "settings-unreadable", write(FILE, "{")),
    Case("status", 2, "settings-unreadable", write(FILE, "{"), folder("below"), cd("below")),
    Case("status", 2, "settings-key", write(FILE, "hom = '.'\n"), says="home"),
    *each(_file, "settings-key", "'' = 1\n", "'a\\nb' = 1\n".replace("'", '"'), "[home.x]\n[nope]\n"),
    *each(_file, "settings-value", "home = 5\n", "home = ''\n", "home = []\n", "[home]\n", 'home = "a\\u0000b"\n'),
    *each(_file, "home-unusable", "home = '~nouser'\n", f"home = '{LONG}'\n"),
    Case("status", 2, "home-is-file", write(FILE, "home = 'clicks.py'\n")),
    *each(_file, "settings-value", "ledger = 5\n", "ledger = ''\n", "ledger = true\n", "master = 5\n", "master = ''\n"),
    *each(_file, "settings-value", "master = ['local']\n", "log_level = 'loud'\n", "log_level = 10\n"),
    *each(_file, "settings-value", "log_level = []\n", "log_format = 'xml'\n", "log_format = {}\n"),
    *each(_file, "settings-value", "connectors = 'kafka'\n", "connectors = [1]\n", "connectors = {}\n"),
    *each(_file, "settings-value", "connectors = ['']\n", "spark = 'local'\n", "spark = []\n"),
    *each(_file, "settings-value", "[spark]\nspark.sql.x = 1\n", "[spark]\n'spark.x' = [1]\n"),
    *each(_file, "settings-value", "[spark]\n'spark.x' = {}\n", "[[spark]]\na = 1\n", "[spark]\n'a b' = 1\n"),
    *each(_file, "settings-value", "[spark]\n'' = 1\n", "[spark]\n'spark.x' = \"a\\u0000b\"\n", "restarts = -1\n"),
    *each(_file, "settings-value", "restarts = 1.5\n", "restarts = true\n", "restarts = 'five'\n", "restarts = nan\n"),
    *each(_file, "settings-value", f"restarts = {10**30}\n"),
    # The environment
    Case("status", 2, "settings-value", env(SLACKWATER_LOG_LEVEL="loud"), says="SLACKWATER_LOG_LEVEL"),
    Case("status", 2, "settings-value", env(SLACKWATER_LOG_LEVEL="INFO")),
    Case("status", 2, "settings-value", env(SLACKWATER_LOG_FORMAT="yaml")),
    Case("status", 0, None, env(SLACKWATER_HOME="", SLACKWATER_LEDGER="", SLACKWATER_MASTER="")),
    Case("status", 2, "home-unusable", env(SLACKWATER_HOME="~nouser")),
    Case("status", 2, "home-unusable", env(SLACKWATER_HOME=LONG)),
    Case("status", 2, "home-is-file", env(SLACKWATER_HOME="clicks.py")),
    Case("status", 2, "settings-value", env(SLACKWATER_HOME="\udcff")),
    Case("status", 2, "settings-value", env(SLACKWATER_LEDGER="\udcff")),
    Case("status", 2, "settings-value", env(SLACKWATER_HOME="   ")),
    Case("status", 2, "settings-value", env(SLACKWATER_LEDGER="   ")),
    Case("run clicks.py", 2, "settings-value", env(SLACKWATER_MASTER="   ")),
    # The address of the ledger
    *each(
        _ledger,
        "ledger-url",
        "nosuch://x/y",
        "mysql://u:secret@h/d",
        "://",
        "sqlite://",
        "s3://bucket/ledger.db",
        "postgresql://u@h:port/d",
    ),
    *each(_ledger, "ledger-url", "postgresql://u@h:99999/d", "postgresql://u@h:-1/d", "postgresql://u@h:\u0663/d"),
    *each(_ledger, "ledger-url", "postgresql://u@[::1/d"),
    Case("status", 2, "ledger-url", write(FILE, "ledger = 'postgresql://u:secret@h:x/d'\n")),
    *(
        Case("status", 2, "ledger-url", env(SLACKWATER_LEDGER=f"postgresql://{address}"), says="at postgresql://u")
        for address in ("u@h/d?nope=1", "u:%zz@h/d", "u@h/d%00b", "u@h/d?options=%ff", f"u@{'h' * 64}.example/d")
    ),
    Case("status", 9, "ledger-unreachable", env(SLACKWATER_LEDGER="postgresql://u@127.0.0.1:1/d")),
    Case("status", 2, "ledger-url", env(SLACKWATER_LEDGER="~nouser/ledger.db")),
    Case("ledger", 4, "ledger-missing", env(SLACKWATER_LEDGER="absent.db")),
    Case("ledger", 4, "ledger-missing", env(SLACKWATER_LEDGER="absent/folder/ledger.db")),
    Case("status", 9, "ledger-unreachable", env(SLACKWATER_LEDGER="clicks")),
    Case("status", 3, "ledger-unreadable", env(SLACKWATER_LEDGER="clicks.py")),
    Case("status", 2, "ledger-url", env(SLACKWATER_LEDGER=LONG)),
)
