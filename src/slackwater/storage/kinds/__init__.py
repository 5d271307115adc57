"""The kinds of stores: a module for each, found by ``storage/registry``; nothing else names one."""
