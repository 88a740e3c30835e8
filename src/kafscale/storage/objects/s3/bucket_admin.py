"""Administration of buckets: creation, region, replication and lifecycle rules.

Rare calls through botocore, in threads. The broker and the operator decide when.
"""

import asyncio
import zlib
from collections.abc import Iterable

from kafscale.observability.logging import get_logger
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.credentials import boto_client
from kafscale.storage.objects.s3.lifecycle import Archive, Plan, TopicRetention, is_same, plan

logger = get_logger(__name__)


async def create_bucket(bucket: S3Bucket) -> None:
    """Create a bucket in its region, unless this account has it already."""
    if await asyncio.to_thread(lambda: boto_client(bucket).create_bucket()):
        logger.info("bucket created", bucket=bucket.short_name, region=bucket.region)


async def bucket_region(bucket: S3Bucket) -> str:
    """The region of a bucket; empty if the server does not report one."""
    return await asyncio.to_thread(lambda: boto_client(bucket).region())


async def replicate(
    bucket: S3Bucket, namespace: str, *, destination_arn: str, role_arn: str
) -> None:
    """Let S3 replicate the objects of a namespace to another bucket, including deletions."""
    rule = {
        "ID": f"kafscale/{namespace}",
        "Priority": zlib.crc32(namespace.encode()) & 0x7FFF_FFFF,  # Unique per rule.
        "Status": "Enabled",
        "Filter": {"Prefix": f"{namespace}/"},
        "DeleteMarkerReplication": {"Status": "Enabled"},
        "Destination": {"Bucket": destination_arn},
    }
    if await asyncio.to_thread(lambda: boto_client(bucket).replicate(rule, role_arn)):
        logger.info("replication set up", bucket=bucket.short_name, to=destination_arn)


class BucketLifecycle:
    """The lifecycle rules of a namespace in a bucket."""

    __slots__ = ("_archive", "_bucket", "_namespace", "_reported")

    def __init__(self, bucket: S3Bucket, namespace: str, archive: Archive | None = None) -> None:
        self._bucket = bucket
        self._namespace = namespace
        self._archive = archive
        self._reported: tuple[int, tuple[str, ...]] = (0, ())

    async def apply(self, topics: Iterable[TopicRetention]) -> bool:
        """Set the rules for all topics; return whether anything changed.

        S3 replaces all rules of a bucket at once, without a condition. So only one broker should
        call this, and only when topics change.
        """
        retentions = list(topics)
        changed, planned = await asyncio.to_thread(self._apply, retentions)
        self._log_warnings(planned)
        if changed:
            logger.info("lifecycle rules written", rules=len(planned.rules))
        return changed

    def _apply(self, topics: list[TopicRetention]) -> tuple[bool, Plan]:
        aws = boto_client(self._bucket)
        configuration = aws.read_lifecycle()
        planned = plan(self._namespace, topics, configuration["Rules"], self._archive)
        changed = not is_same(planned.rules, configuration["Rules"])
        if changed:
            aws.write_lifecycle(configuration, planned.rules)
        return changed, planned

    def _log_warnings(self, planned: Plan) -> None:
        """Log each problem once."""
        problems = (len(planned.left_out), tuple(planned.conflicting))
        if problems == self._reported:
            return
        self._reported = problems
        if planned.left_out:
            logger.warning(
                "lifecycle rule limit of S3 reached, topics without a rule",
                topics=len(planned.left_out),
                first=planned.left_out[0],
            )
        for name in planned.conflicting:
            logger.warning(
                "foreign lifecycle rule expires objects of this namespace",
                rule=name,
                namespace=self._namespace,
            )
