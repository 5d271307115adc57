"""Checks of the area APP: the program of the query, and how far its batches keep up."""
