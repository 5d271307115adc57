"""A module or folder for each verb: use case, page and JSON document."""
