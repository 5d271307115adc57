"""Triggers and modes of execution that another one cannot continue."""
