"""The command line: parses, calls one use case, renders. stdout is data, stderr is talk. Nothing imports it."""
