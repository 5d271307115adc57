"""The kinds of stores, one per module, found by ``storage/registry``."""
