"""What is asked of S3 about a bucket, not about objects: to make it, to find it, to set its rules.

It is asked seldom, through AWS's own library and in threads. When it is, and with which topics, is
left to the broker.
"""

import asyncio
import zlib
from collections.abc import Iterable

from kafscale.observability.logging import get_logger
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.credentials import account
from kafscale.storage.objects.s3.lifecycle import Plan, TopicRetention, is_same, plan

logger = get_logger(__name__)


async def create_bucket(bucket: S3Bucket) -> None:
    """Make a bucket, in its region; that it is ours already is as good."""
    if await asyncio.to_thread(lambda: account(bucket).create_bucket()):
        logger.info("bucket created", bucket=bucket.short_name, region=bucket.region)


async def bucket_region(bucket: S3Bucket) -> str:
    """The region that a bucket is in; empty where the server knows of none."""
    return await asyncio.to_thread(lambda: account(bucket).region())


async def replicate(
    bucket: S3Bucket, namespace: str, *, destination_arn: str, role_arn: str
) -> None:
    """Have S3 copy the objects of a namespace to another bucket, deletions included."""
    rule = {
        "ID": f"kafscale/{namespace}",
        "Priority": zlib.crc32(namespace.encode()) & 0x7FFF_FFFF,  # Any, but one a rule.
        "Status": "Enabled",
        "Filter": {"Prefix": f"{namespace}/"},
        "DeleteMarkerReplication": {"Status": "Enabled"},
        "Destination": {"Bucket": destination_arn},
    }
    if await asyncio.to_thread(lambda: account(bucket).replicate(rule, role_arn)):
        logger.info("replication set up", bucket=bucket.short_name, to=destination_arn)


class BucketLifecycle:
    """The lifecycle rules of one bucket, as far as they are ours."""

    __slots__ = ("_bucket", "_namespace", "_told")

    def __init__(self, bucket: S3Bucket, namespace: str) -> None:
        self._bucket = bucket
        self._namespace = namespace
        self._told: tuple[int, tuple[str, ...]] = (0, ())

    async def apply(self, topics: Iterable[TopicRetention]) -> bool:
        """Make the rules those of `topics`, which are all there are; whether anything changed.

        S3 takes all rules of a bucket at once and knows no condition, so one broker alone should
        call this, and not more often than topics change.
        """
        wanted = list(topics)
        changed, planned = await asyncio.to_thread(self._apply, wanted)
        self._tell(planned)
        if changed:
            logger.info("lifecycle rules written", rules=len(planned.rules))
        return changed

    def _apply(self, topics: list[TopicRetention]) -> tuple[bool, Plan]:
        aws = account(self._bucket)
        found = aws.read_lifecycle()
        planned = plan(self._namespace, topics, found["Rules"])
        changed = not is_same(planned.rules, found["Rules"])
        if changed:
            aws.write_lifecycle(found, planned.rules)
        return changed, planned

    def _tell(self, planned: Plan) -> None:
        """Warn of what is not as it should be, once."""
        news = (len(planned.left_out), tuple(planned.threats))
        if news == self._told:
            return
        self._told = news
        if planned.left_out:
            logger.warning(
                "topics without a lifecycle rule, as S3 takes no more",
                topics=len(planned.left_out),
                first=planned.left_out[0],
            )
        for name in planned.threats:
            logger.warning(
                "a lifecycle rule of others expires objects of this namespace",
                rule=name,
                namespace=self._namespace,
            )
