"""Delta tables: each batch is one commit that carries the batch's number, so that a repeated batch is skipped."""
