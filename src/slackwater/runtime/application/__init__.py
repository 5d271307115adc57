"""Applications that start their own queries: run as they are, or up to the starts of their queries to read these."""
