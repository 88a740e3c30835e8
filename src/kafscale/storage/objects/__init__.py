"""Object storage: the only package that talks to S3, with stores on local disk and in memory.

A broker's store has layers: `RetryingObjectStore` over `LimitedObjectStore` over
`ObservedObjectStore` over the store itself. So metrics count every attempt, and time spent waiting
for the request limit is not measured as latency. Tests put `FaultyObjectStore` below them.
"""

from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.conditional_put_probe import probe_access, probe_create_only
from kafscale.storage.objects.layers.limited import LimitedObjectStore
from kafscale.storage.objects.layers.observed import ObservedObjectStore, OperationObserver
from kafscale.storage.objects.layers.replica import ReplicaReadingObjectStore
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.s3.bucket_admin import BucketLifecycle, create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.lifecycle import TopicRetention
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

__all__ = [
    "BlockingObjectStore",
    "BucketLifecycle",
    "LimitedObjectStore",
    "LocalObjectStore",
    "MemoryObjectStore",
    "ObjectInfo",
    "ObjectStore",
    "ObservedObjectStore",
    "OperationObserver",
    "ReplicaReadingObjectStore",
    "RetryingObjectStore",
    "S3Bucket",
    "S3ObjectStore",
    "TopicRetention",
    "create_bucket",
    "probe_access",
    "probe_create_only",
]
