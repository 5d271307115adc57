"""Applications that start their own queries: runs them, or reads their queries."""
