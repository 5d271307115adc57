"""The command line: parses, calls one use case, renders. Data goes to stdout, messages to stderr."""
