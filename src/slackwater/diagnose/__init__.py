"""From a snapshot of a stream to findings. Pure: the same snapshot always gives the same findings.

What may not happen: IO; two places that judge the same fact.
"""
