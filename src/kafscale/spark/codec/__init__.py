"""Converts record batches to Arrow and back, compiled with numba."""
