"""What checks share: their type, and the commands that their findings name."""
