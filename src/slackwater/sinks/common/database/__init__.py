"""What all sinks that write to a SQL database share: addresses without passwords, and the marker table.

No password may leave this package but to a driver of a database.
"""
