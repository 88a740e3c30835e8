"""Operations of a client on topics, groups and the cluster, and their outcomes.

    operations = ClientOperations(config)
    assert operations.produce(topic) == OK
    assert operations.delete_topic(topic) == "TOPIC_AUTHORIZATION_FAILED"

Operations use librdkafka where it supports them; the outcome is Kafka's error name, or `OK`.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
)
from services.acls import Acls, acl_binding
from services.client_config import ClientConfig
from services.secured_wire import SecuredWire

OK = "ok"
WAIT_S = 15


class ClientOperations:
    """The operations of one user."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self._config.librdkafka())

    # --- records ----------------------------------------------------------------------------------

    def produce(self, topic: str, *, is_idempotent: bool = False) -> str:
        def attempt() -> None:
            errors: list[KafkaError | None] = []
            settings = {"enable.idempotence": is_idempotent}
            producer = Producer(self._config.librdkafka() | settings)
            producer.produce(topic, b"", on_delivery=lambda error, _: errors.append(error))
            try:
                assert producer.flush(WAIT_S) == 0
            except SystemError as error:
                # Raised if on_delivery is called after a fatal error, which is the cause.
                raise error.__cause__ or error from None
            if errors[0] is not None:
                raise KafkaException(errors[0])

        return _outcome(attempt)

    def produce_idempotently(self, topic: str) -> str:
        return self.produce(topic, is_idempotent=True)

    def read(self, topic: str) -> str:
        """Fetch without a group, which librdkafka does not support."""
        with SecuredWire(self._config) as wire:
            assert wire.log_in_with(self._config) == 0
            return _error_name(wire.fetch(topic).error_code)

    def consume_in_classic_group(self, topic: str, group: str, *, protocol: str = "classic") -> str:
        settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer(self._config.librdkafka() | settings)
        try:
            consumer.subscribe([topic])
            return _poll_outcome(consumer)
        finally:
            consumer.close()

    def consume_in_consumer_group(self, topic: str, group: str) -> str:
        """Consume with the protocol of KIP-848."""
        return self.consume_in_classic_group(topic, group, protocol="consumer")

    def commit(self, topic: str, group: str) -> str:
        offsets = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])
        return _outcome(lambda: self.admin.alter_consumer_group_offsets([offsets]))

    # --- topics -----------------------------------------------------------------------------------

    def list_offsets(self, topic: str) -> str:
        requested = {TopicPartition(topic, 0): OffsetSpec.latest()}
        return _outcome(lambda: self.admin.list_offsets(requested))

    def describe_topic(self, topic: str) -> str:
        return _outcome(lambda: self.admin.describe_topics(TopicCollection([topic])))

    def create_topic(self, topic: str) -> str:
        return _outcome(lambda: self.admin.create_topics([NewTopic(f"{topic}-new", 1)]))

    def add_partitions(self, topic: str) -> str:
        return _outcome(lambda: self.admin.create_partitions([NewPartitions(topic, 2)]))

    def describe_configs(self, topic: str) -> str:
        return _outcome(
            lambda: self.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        )

    def alter_configs(self, topic: str) -> str:
        entry = ConfigEntry("retention.ms", "70000", incremental_operation=AlterConfigOpType.SET)
        requested = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        return _outcome(lambda: self.admin.incremental_alter_configs([requested]))

    def delete_records(self, topic: str) -> str:
        return _outcome(lambda: self.admin.delete_records([TopicPartition(topic, 0, 1)]))

    def delete_topic(self, topic: str) -> str:
        return _outcome(lambda: self.admin.delete_topics([topic]))

    def lists_topic(self, topic: str) -> bool:
        return topic in self.admin.list_topics(timeout=WAIT_S).topics

    # --- groups -----------------------------------------------------------------------------------

    def list_committed_offsets(self, group: str) -> str:
        requested = [ConsumerGroupTopicPartitions(group)]
        return _outcome(lambda: self.admin.list_consumer_group_offsets(requested))

    def describe_group(self, group: str) -> str:
        return _outcome(lambda: self.admin.describe_consumer_groups([group]))

    def delete_group(self, group: str) -> str:
        return _outcome(lambda: self.admin.delete_consumer_groups([group]))

    def lists_group(self, group: str) -> bool:
        listed = self.admin.list_consumer_groups().result(timeout=WAIT_S)
        return group in {each.group_id for each in listed.valid}

    # --- the cluster ------------------------------------------------------------------------------

    def describe_cluster(self) -> str:
        return _outcome(lambda: {"": self.admin.describe_cluster()})

    def describe_broker(self) -> str:
        requested = [ConfigResource(ResourceType.BROKER, "0")]
        return _outcome(lambda: self.admin.describe_configs(requested))

    def create_acl(self) -> str:
        return _outcome(
            lambda: Acls(self.admin).add(acl_binding("User:absent", "READ", topic="none"))
        )

    def add_user(self) -> str:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        requested = UserScramCredentialUpsertion("newcomer", info, b"secret-of-newcomer")
        return _outcome(lambda: self.admin.alter_user_scram_credentials([requested]))

    def describe_acls(self) -> str:
        """On the wire: confluent-kafka returns an empty list instead of the error."""
        return self._error_of(DESCRIBE_ACLS, DescribeAclsRequest(1, None, 1, None, None, 1, 1))

    def describe_users(self) -> str:
        """On the wire: confluent-kafka crashes on the error."""
        return self._error_of(
            DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest()
        )

    def _error_of(self, api: Api[Any, Any], request: Message) -> str:
        with SecuredWire(self._config) as wire:
            assert wire.log_in_with(self._config) == 0
            return _error_name(wire.call(api, api.versions[-1], request).error_code)


def _error_name(code: int) -> str:
    return ErrorCode(code).name if code else OK


def _outcome(attempt: Callable[[], Any]) -> str:
    """Run an operation, wait for the futures that it returns, and return the outcome."""
    try:
        futures = attempt()
        if isinstance(futures, dict):
            for future in futures.values():
                _check_partitions(future.result(timeout=WAIT_S))
    except KafkaException as error:
        return str(error.args[0].name())
    return OK


def _check_partitions(result: Any) -> None:
    """Raise the error of a partition; some results hold one for each."""
    for partition in getattr(result, "topic_partitions", None) or ():
        if partition.error is not None:
            raise KafkaException(partition.error)


def _poll_outcome(consumer: Consumer) -> str:
    message = consumer.poll(WAIT_S)
    assert message is not None, f"neither a record nor an error within {WAIT_S} s"
    error = message.error()
    return OK if error is None else str(error.name())
