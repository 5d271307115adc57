"""Who may write to a stream now: the lease, its holder's processes, and how a lease is kept alive.

What may not happen: two holders at once; a lease taken from a holder whose processes are alive.
"""
