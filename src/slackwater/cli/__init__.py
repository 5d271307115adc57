"""Parses the command line, calls a use case, renders. Data goes to stdout, messages to stderr."""
