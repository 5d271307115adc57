"""A module or folder for each verb: arguments, use case, page and JSON document."""
