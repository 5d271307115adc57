"""The verbs of the command line, a module or folder each: arguments, use case, page and JSON document."""
