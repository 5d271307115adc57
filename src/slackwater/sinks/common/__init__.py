"""Shared by the kinds of sinks: contract, registry, cutting, swapping, owners. Does not depend on any kind."""
