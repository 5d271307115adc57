"""Where bytes live: read and write stores over local disks and fsspec file systems.

Reading and writing are different types: only ``apply`` and the runner get a ``WriteStore``. What differs
between stores (atomic rename, atomic replacement) is data in ``StoreTraits``, never a type check.
"""
