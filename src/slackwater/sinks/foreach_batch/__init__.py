"""A user's own batch function, which gets the batch's id with what it needs to write each batch once."""
