"""From a stream's snapshot to findings. Pure: no IO, and only one place judges a fact."""
