"""The logs of a checkpoint: ``offsets/``, ``commits/`` and ``metadata``."""
