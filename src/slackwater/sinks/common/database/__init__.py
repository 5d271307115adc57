"""Shared by sinks for SQL databases: addresses without passwords, and the marker table.

Passwords may leave this package only to a driver.
"""
