"""Object storage: the one room that talks to S3, with twins on disk and in memory.

A broker's store is made in layers: `RetryingObjectStore` over `LimitedObjectStore` over
`ObservedObjectStore` over the store itself, so that every attempt is seen, and waiting for its turn
is nobody's slowness. Tests put `FaultyObjectStore` below them.
"""

from kafscale.storage.objects.base import ObjectInfo, ObjectStore
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.bucket import S3Bucket
from kafscale.storage.objects.faulty import Fault, FaultyObjectStore, Rule
from kafscale.storage.objects.lifecycle import TopicRetention
from kafscale.storage.objects.limit import LimitedObjectStore
from kafscale.storage.objects.local import LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.observed import ObservedObjectStore, OperationObserver
from kafscale.storage.objects.probe import probe_access, probe_create_only
from kafscale.storage.objects.replica import ReplicaReadingObjectStore
from kafscale.storage.objects.retry import RetryingObjectStore
from kafscale.storage.objects.s3 import S3ObjectStore
from kafscale.storage.objects.s3_control import BucketLifecycle, create_bucket

__all__ = [
    "BlockingObjectStore",
    "BucketLifecycle",
    "Fault",
    "FaultyObjectStore",
    "LimitedObjectStore",
    "LocalObjectStore",
    "MemoryObjectStore",
    "ObjectInfo",
    "ObjectStore",
    "ObservedObjectStore",
    "OperationObserver",
    "ReplicaReadingObjectStore",
    "RetryingObjectStore",
    "Rule",
    "S3Bucket",
    "S3ObjectStore",
    "TopicRetention",
    "create_bucket",
    "probe_access",
    "probe_create_only",
]
