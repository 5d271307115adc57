"""Sinks that cannot recognise a batch: what the next start does with an interrupted one."""
