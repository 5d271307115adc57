"""Crash drills on a user's sink, and the process that runs them."""
