"""Frozen values that the rest of the package speaks in. Nothing here does IO or imports a package of ours."""
