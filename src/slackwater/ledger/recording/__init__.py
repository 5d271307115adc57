"""Copies the logs of checkpoints and outputs into the ledger, while a query runs and afterwards.

What may not happen: a changed checkpoint; an error of the ledger or of a store that reaches the query.
"""
