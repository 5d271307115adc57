"""The program of a query, as its code and its plan show it."""
