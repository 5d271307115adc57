"""A checkpoint directory: its content, marks, and changes of its text logs.

Reading takes a ``ReadStore`` and never fails on damage: a bad file becomes a ``Damage`` value. Only ``writer`` takes a
``WriteStore``.
"""
