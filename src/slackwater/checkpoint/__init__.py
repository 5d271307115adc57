"""A checkpoint directory as a whole: what is in it, its marks, and how its text logs are changed.

Reading takes a ``ReadStore`` and never fails on damage: a bad file becomes a ``Damage`` value and the rest is still
read. A checkpoint is listed once, not once for each question. Only ``writer`` takes a ``WriteStore``.
"""
