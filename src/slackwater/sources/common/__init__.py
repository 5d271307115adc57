"""What kinds of sources share: the contract, what an opaque kind does, and how kinds are recognised."""
