"""Shared by the kinds of sinks: contract, registry, cutting, swapping, owners. Names no kind."""
