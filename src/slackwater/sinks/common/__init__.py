"""What the kinds of sinks share: the contract, the registry, cutting, swapping, owners. It names no kind."""
