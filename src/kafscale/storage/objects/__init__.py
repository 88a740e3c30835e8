"""Object storage: the only package that talks to S3, with stores on local disk and in memory.

A broker's store has layers: `RetryingObjectStore` over `LimitedObjectStore` over
`ObservedObjectStore` over the store itself. So metrics count every attempt, and time spent waiting
for the request limit is not measured as latency. Tests put the `FaultyObjectStore` of
`tests/doubles` below them.
"""
