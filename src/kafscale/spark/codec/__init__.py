"""Record batches to Arrow and back, compiled by numba."""
