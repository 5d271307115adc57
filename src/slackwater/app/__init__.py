"""Use cases, one module each: the only thing that the command line (and later pages) call.

A use case takes plain values, returns plain values and prints nothing; its caller renders the result.
"""
