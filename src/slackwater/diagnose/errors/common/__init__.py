"""What the groups of error texts share: their types, the template language and the reading of logs."""
