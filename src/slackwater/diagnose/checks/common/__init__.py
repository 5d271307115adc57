"""What checks share."""
