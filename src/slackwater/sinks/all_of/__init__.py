"""One batch into several outputs, each with a mark and an owner of its own."""
