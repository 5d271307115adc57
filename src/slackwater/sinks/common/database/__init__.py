"""Shared by sinks for SQL databases: addresses without passwords, and the marker table.

No password may leave this package except to a driver.
"""
