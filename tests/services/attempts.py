"""What a client may try to do to a topic and a group, and what comes of it.

    attempts = Attempts(way)
    assert attempts.produce(topic) == OK
    assert attempts.delete_topic(topic) == "TOPIC_AUTHORIZATION_FAILED"

What can be is done by librdkafka; the outcome is the name of Kafka's error, or `OK`.
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
from services.rules import Rules, rule
from services.secured_wire import SecuredWire
from services.way_in import WayIn

OK = "ok"
WAIT_S = 15


class Attempts:
    """The attempts of one who has come by a way."""

    def __init__(self, way: WayIn) -> None:
        self._way = way

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self._way.librdkafka())

    # --- records ----------------------------------------------------------------------------------

    def produce(self, topic: str, *, is_idempotent: bool = False) -> str:
        def attempt() -> None:
            fatal: list[KafkaError] = []
            errors: list[KafkaError | None] = []
            # Unheard, a fatal error would be raised while the delivery is told of.
            hears = {"error_cb": lambda error: error.fatal() and fatal.append(error)}
            settings = {"enable.idempotence": is_idempotent}
            producer = Producer(self._way.librdkafka() | settings | hears)
            producer.produce(topic, b"", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(WAIT_S) == 0
            error = next(iter(fatal), errors[0])
            if error is not None:
                raise KafkaException(error)

        return _outcome(attempt)

    def produce_idempotently(self, topic: str) -> str:
        return self.produce(topic, is_idempotent=True)

    def read(self, topic: str) -> str:
        """Read as a member of no group, of which librdkafka knows nothing."""
        with SecuredWire(self._way) as wire:
            assert wire.enter(self._way) == 0
            return _named(wire.fetch(topic).error_code)

    def be_member(self, topic: str, group: str, *, protocol: str = "classic") -> str:
        settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer(self._way.librdkafka() | settings)
        try:
            consumer.subscribe([topic])
            return _polled(consumer)
        finally:
            consumer.close()

    def be_modern_member(self, topic: str, group: str) -> str:
        """As of KIP-848."""
        return self.be_member(topic, group, protocol="consumer")

    def commit(self, topic: str, group: str) -> str:
        places = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])
        return _outcome(lambda: self.admin.alter_consumer_group_offsets([places]))

    # --- topics -----------------------------------------------------------------------------------

    def list_offsets(self, topic: str) -> str:
        asked = {TopicPartition(topic, 0): OffsetSpec.latest()}
        return _outcome(lambda: self.admin.list_offsets(asked))

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
        asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        return _outcome(lambda: self.admin.incremental_alter_configs([asked]))

    def delete_records(self, topic: str) -> str:
        return _outcome(lambda: self.admin.delete_records([TopicPartition(topic, 0, 1)]))

    def delete_topic(self, topic: str) -> str:
        return _outcome(lambda: self.admin.delete_topics([topic]))

    def sees_topic(self, topic: str) -> bool:
        return topic in self.admin.list_topics(timeout=WAIT_S).topics

    # --- groups -----------------------------------------------------------------------------------

    def list_committed(self, group: str) -> str:
        asked = [ConsumerGroupTopicPartitions(group)]
        return _outcome(lambda: self.admin.list_consumer_group_offsets(asked))

    def describe_group(self, group: str) -> str:
        return _outcome(lambda: self.admin.describe_consumer_groups([group]))

    def delete_group(self, group: str) -> str:
        return _outcome(lambda: self.admin.delete_consumer_groups([group]))

    def sees_group(self, group: str) -> bool:
        listed = self.admin.list_consumer_groups().result(timeout=WAIT_S)
        return group in {each.group_id for each in listed.valid}

    # --- the cluster ------------------------------------------------------------------------------

    def describe_cluster(self) -> str:
        return _outcome(lambda: {"": self.admin.describe_cluster()})

    def describe_broker(self) -> str:
        asked = [ConfigResource(ResourceType.BROKER, "0")]
        return _outcome(lambda: self.admin.describe_configs(asked))

    def add_rule(self) -> str:
        return _outcome(lambda: Rules(self.admin).add(rule("User:nobody", "READ", topic="none")))

    def add_user(self) -> str:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        asked = UserScramCredentialUpsertion("newcomer", info, b"secret-of-newcomer")
        return _outcome(lambda: self.admin.alter_user_scram_credentials([asked]))

    def list_rules(self) -> str:
        """By hand: librdkafka's Python client takes a refusal for an empty list."""
        return self._answer_to(DESCRIBE_ACLS, DescribeAclsRequest(1, None, 1, None, None, 1, 1))

    def list_users(self) -> str:
        """By hand: librdkafka's Python client does not survive a refusal."""
        return self._answer_to(
            DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest()
        )

    def _answer_to(self, api: Api[Any, Any], request: Message) -> str:
        with SecuredWire(self._way) as wire:
            assert wire.enter(self._way) == 0
            return _named(wire.call(api, api.versions[-1], request).error_code)


def _named(code: int) -> str:
    return ErrorCode(code).name if code else OK


def _outcome(attempt: Callable[[], Any]) -> str:
    """What comes of the futures that an attempt brings, if it brings some."""
    try:
        brought = attempt()
        if isinstance(brought, dict):
            for future in brought.values():
                _check_partitions(future.result(timeout=WAIT_S))
    except KafkaException as error:
        return str(error.args[0].name())
    return OK


def _check_partitions(result: Any) -> None:
    """Some results hold an error for each partition."""
    for partition in getattr(result, "topic_partitions", None) or ():
        if partition.error is not None:
            raise KafkaException(partition.error)


def _polled(consumer: Consumer) -> str:
    message = consumer.poll(WAIT_S)
    assert message is not None, "neither a record nor an error comes"
    error = message.error()
    return OK if error is None else str(error.name())
