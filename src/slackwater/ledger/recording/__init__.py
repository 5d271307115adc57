"""Copies logs of checkpoints and outputs into the ledger, during runs and afterwards.

Must not happen: a changed checkpoint; an error of ledger or store reaching the query.
"""
