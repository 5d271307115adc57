"""Parses the command line, calls one use case, renders. Data goes to stdout, messages to stderr."""
