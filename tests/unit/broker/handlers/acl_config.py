"""Configs with authorization, and clients: root is a super user, alice is not."""

from msgspec.structs import replace

from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.security import Authorization
from kafscale.metadata.access.model import (
    ANY_HOST,
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.security.principal import Principal
from unit.broker.in_memory_broker import CLIENT

AUTHORIZATION = Authorization(enabled=True, super_users=("User:root",))
ACLS_ENABLED = Config(s3=S3(use_memory=True), authorization=AUTHORIZATION)
ACLS_WITHOUT_ADMIN = Config(
    s3=S3(use_memory=True), authorization=AUTHORIZATION, broker=Broker(allow_admin_apis=False)
)

ROOT = replace(CLIENT, principal=Principal("User:root"))
ALICE = replace(CLIENT, principal=Principal("User:alice"))


def on_cluster(operation, principal="User:alice"):
    """An ACL that allows an operation on the cluster."""
    return Acl(
        ResourceType.CLUSTER,
        PatternType.LITERAL,
        CLUSTER_NAME,
        principal,
        ANY_HOST,
        Operation(operation),
        Permission.ALLOW,
    )
