"""Encodes ACLs, SCRAM credentials and quotas as protobuf messages.

Invariants: decoding returns a value equal to the encoded one; a value that is invalid, unknown or
stored under the key of another raises `DamagedObjectError`.
"""

from collections.abc import Mapping

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.access import keys
from kafscale.metadata.access.model import (
    Acl,
    Operation,
    PatternType,
    Permission,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramMechanism,
)
from kafscale.metadata.schema.protobuf import parse, serialize
from kafscale.metadata.store.base import Entry

Limits = Mapping[str, float]
"""The limits of an entity by Kafka's names, such as `producer_byte_rate`."""


def encode_acl(acl: Acl) -> bytes:
    return serialize(
        messages.AccessRule(
            resource_type=acl.resource_type,
            pattern_type=acl.pattern_type,
            resource_name=acl.resource_name,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission=acl.permission,
        )
    )


def decode_acl(entry: Entry) -> Acl:
    record = parse(messages.AccessRule(), entry)
    try:
        acl = Acl(
            ResourceType(record.resource_type),
            PatternType(record.pattern_type),
            record.resource_name,
            record.principal,
            record.host,
            Operation(record.operation),
            Permission(record.permission),
        )
    except ValueError as error:
        raise DamagedObjectError(entry.key, str(error)) from error
    _check_key(entry, keys.acl(acl))
    return acl


def encode_credential(credential: ScramCredential) -> bytes:
    return serialize(
        messages.ScramCredential(
            user=credential.user,
            mechanism=credential.mechanism,
            salt=credential.salt,
            iterations=credential.iterations,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
        )
    )


def decode_credential(entry: Entry) -> ScramCredential:
    record = parse(messages.ScramCredential(), entry)
    try:
        mechanism = ScramMechanism(record.mechanism)
    except ValueError as error:
        raise DamagedObjectError(entry.key, str(error)) from error
    _check_key(entry, keys.credential(record.user, mechanism))
    return ScramCredential(
        record.user, mechanism, record.salt, record.iterations, record.stored_key, record.server_key
    )


def encode_quota(entity: QuotaEntity, limits: Limits) -> bytes:
    return serialize(
        messages.Quota(user=entity.user, client_id=entity.client_id, ip=entity.ip, limits=limits)
    )


def decode_quota(entry: Entry) -> tuple[QuotaEntity, Limits]:
    record = parse(messages.Quota(), entry)
    entity = QuotaEntity(
        user=record.user if record.HasField("user") else None,
        client_id=record.client_id if record.HasField("client_id") else None,
        ip=record.ip if record.HasField("ip") else None,
    )
    if entity == QuotaEntity():
        raise DamagedObjectError(entry.key, "a quota without an entity")
    _check_key(entry, keys.quota(entity))
    return entity, dict(record.limits)


def _check_key(entry: Entry, key: str) -> None:
    if entry.key != key:
        raise DamagedObjectError(entry.key, f"contains the record of {key}")
