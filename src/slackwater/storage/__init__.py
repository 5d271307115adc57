"""Read and write stores over local disks and fsspec file systems.

Only ``apply`` and the runner get a ``WriteStore``. Differences between stores are data in ``StoreTraits``, never a type
check.
"""
