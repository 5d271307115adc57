"""The lease, its holder's processes, and its renewal.

Must not happen: two holders at once; a lease taken from a holder with live processes.
"""
