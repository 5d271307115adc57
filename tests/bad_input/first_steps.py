"""``init``, ``completion``, ``home accept`` and ``--debug``."""

from tests.bad_input.case import LONG, Case, fifo, folder, forbid, in_a_process, largest_file, link, loop, write

HOME = ".slackwater/home.json"
IDENTITY = '{"id": "3a6c", "path": "/nowhere/else/.slackwater"}'

CASES = (
    Case("init", 2, "usage"),
    Case(("init", ""), 2, "usage"),
    Case("init new more", 2, "usage"),
    Case(("init", "a\0b"), 2, "argument-bytes"),
    Case("init .", 5, "init-not-empty"),
    Case("init clicks", 5, "init-not-empty"),
    Case("init clicks.py", 5, "init-not-empty"),
    Case("init a-link", 5, "init-not-empty", link("a-link", "nowhere")),
    Case("init a-link", 5, "init-not-empty", link("a-link", "clicks")),
    Case("init a-loop", 5, "init-not-empty", loop("a-loop")),
    Case("init a-fifo", 5, "init-not-empty", fifo("a-fifo")),
    Case("init clicks.py/below", 2, "init-unwritable"),
    Case(f"init {LONG}", 2, "init-unwritable"),
    Case("init a-loop/below", 2, "init-unwritable", loop("a-loop")),
    Case("init below/new", 2, "init-unwritable", folder("below"), forbid("below", 0o500)),
    Case("init below", 2, "init-unwritable", folder("below"), forbid("below")),
    Case("init below", 2, "init-unwritable", folder("below"), forbid("below", 0o500)),
    Case("init new", 9, "disk-full", largest_file(1000)),
    Case("completion", 2, "usage"),
    Case("completion nosuch", 2, "usage", says="choose from bash, zsh, fish; found 'nosuch'"),
    Case("completion BASH", 2, "usage"),
    Case(("completion", ""), 2, "usage"),
    Case("completion bash zsh", 2, "usage"),
    Case("completion bash", 0, None, says="slackwater"),
    Case("completion zsh", 0, None, says="slackwater"),
    Case("completion fish", 0, None, in_a_process(PYTHONIOENCODING="ascii")),
    Case("home", 2, "usage"),
    Case("home accept", 2, "usage"),
    Case("home accept --moved --copied", 2, "usage"),
    Case("apply plan.json --yes", 5, "home-moved", write(HOME, IDENTITY)),
    Case("run clicks.py", 5, "home-moved", write(HOME, IDENTITY)),
    Case("home accept --copied", 5, "home-moved", write(HOME, IDENTITY)),
    Case("apply plan.json --yes", 3, "home-file-damaged", write(HOME, "x")),
    Case("home accept --moved", 3, "home-file-damaged", write(HOME, "{}")),
    Case("status --moved", 2, "usage"),
    Case("status --debug", 2, "usage"),
    Case("run p.py --debug=yes", 2, "usage"),
)
