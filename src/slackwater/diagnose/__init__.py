"""From a stream's snapshot to findings. Pure: no IO, and each fact is judged in a single place."""
