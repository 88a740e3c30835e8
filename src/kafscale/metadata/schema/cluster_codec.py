"""Encodes broker registrations and assignments as the published protobuf messages.

The invariants are those of `topic_codec`. Messages name brokers as keys do: `broker-2`. Numbers, as
earlier versions wrote them, are read too.
"""

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import Assignment, BrokerInfo, ListenerEndpoint
from kafscale.metadata.schema.protobuf import format_time, parse, read_time, serialize
from kafscale.metadata.store.base import Entry


def encode_broker(broker: BrokerInfo, now_ms: int) -> bytes:
    record = messages.BrokerRegistration(
        broker_id=keys.broker_name(broker.id),
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        started_at=format_time(broker.started_ms),
        last_heartbeat=format_time(now_ms),
        version=broker.version,
        epoch=broker.epoch,
        control_host=broker.control_host,
        control_port=broker.control_port,
        draining=broker.is_draining,
        location=broker.location,
        endpoints=[
            messages.ListenerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in broker.endpoints
        ],
    )
    return serialize(record)


def decode_broker(entry: Entry) -> BrokerInfo:
    record = parse(messages.BrokerRegistration(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.BrokerKey), entry.key
    broker_id = _parse_broker_id(entry, record.broker_id)
    if broker_id != key.broker_id:
        raise DamagedObjectError(entry.key, f"contains another broker id: {record.broker_id!r}")
    return BrokerInfo(
        id=broker_id,
        epoch=record.epoch,
        host=record.host,
        port=record.port,
        rack=record.rack,
        version=record.version,
        started_ms=read_time(entry, record.started_at),
        control_host=record.control_host,
        control_port=record.control_port,
        endpoints=tuple(
            ListenerEndpoint(each.name, each.host, each.port, each.security_protocol)
            for each in record.endpoints
        ),
        is_draining=record.draining,
        location=record.location,
        lease=entry.lease,
        mod_revision=entry.mod_revision,
    )


def encode_assignment(assignment: Assignment) -> bytes:
    reassigning_to = assignment.reassigning_to
    record = messages.PartitionAssignment(
        broker_id=keys.broker_name(assignment.broker_id),
        epoch=assignment.leader_epoch,
        assigned_at=format_time(assignment.assigned_ms),
        broker_epoch=assignment.broker_epoch,
        clean=assignment.fully_rolled,
        moving_to="" if reassigning_to is None else keys.broker_name(reassigning_to),
        topic_id=assignment.topic_id,
        end_offset=assignment.end_offset,
    )
    if assignment.lost_owner is not None:
        lost_id, record.lost_broker_epoch = assignment.lost_owner
        record.lost_broker_id = keys.broker_name(lost_id)
    return serialize(record)


def decode_assignment(entry: Entry) -> Assignment:
    record = parse(messages.PartitionAssignment(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.AssignmentKey), entry.key
    return Assignment(
        topic=key.topic,
        topic_id=record.topic_id,
        partition=key.partition,
        broker_id=_parse_broker_id(entry, record.broker_id),
        broker_epoch=record.broker_epoch,
        leader_epoch=record.epoch,
        fully_rolled=record.clean,
        reassigning_to=_parse_broker_id(entry, record.moving_to) if record.moving_to else None,
        end_offset=record.end_offset if record.HasField("end_offset") else None,
        lost_owner=(
            (_parse_broker_id(entry, record.lost_broker_id), record.lost_broker_epoch)
            if record.lost_broker_id
            else None
        ),
        assigned_ms=read_time(entry, record.assigned_at),
        mod_revision=entry.mod_revision,
    )


def _parse_broker_id(entry: Entry, text: str) -> int:
    broker_id = keys.parse_broker_name(text)
    if broker_id is not None:
        return broker_id
    if not (text.isascii() and text.isdecimal()):
        raise DamagedObjectError(entry.key, f"not a broker id: {text!r}")
    return int(text)
