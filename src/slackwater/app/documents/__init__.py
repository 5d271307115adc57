"""The JSON documents of the commands, one module each: a pure function from a use case's result to a dictionary.

``docs/json.md`` and ``docs/inspect.md`` describe every field. A plan is its own document: ``plan/document.py``.
"""
