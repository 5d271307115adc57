"""A table of any database that SQLAlchemy knows, exactly once: rows and the marker's row in one transaction."""
