"""Shared by kinds of sources: the contract, opaque kinds, and recognition."""
