"""What goals share: their base, and where they are found."""
