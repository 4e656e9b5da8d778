"""The only modules that import numba; each is thin over the model's machine code."""
