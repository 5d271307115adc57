"""A checkpoint's state: operators, stores, loadable versions, rows.

``inventory`` uses file names, ``operators`` metadata and schemas, ``reader`` rows. Only ``reader`` and its own modules
import numpy and pyarrow.
"""
