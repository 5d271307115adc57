"""A module for each goal."""
