"""Runs applications that start their own queries, or reads their queries."""
