"""The kinds of stores, a module each, found by ``storage/registry``."""
