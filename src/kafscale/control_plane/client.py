"""A client of the control plane: asks one broker, for tools and for the operator, or the operator.

The law: every question has a time limit, and what does not come back as an answer is raised as a
`ControlError` with a sentence for people.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any, Final, Self

import grpc

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.errors import refusal
from kafscale.control_plane.messages import (
    Ack,
    AssignmentWatchRequest,
    BrokerStatusRequest,
    BrokerStatusResponse,
    DrainPartitionsRequest,
    DrainPartitionsResponse,
    MetricsSample,
    PartitionAssignmentEvent,
    RebalanceRequest,
    RebalanceResponse,
    SealTailRequest,
    SealTailResponse,
    SwapSegmentsRequest,
    SwapSegmentsResponse,
    TriggerFlushRequest,
    TriggerFlushResponse,
)
from kafscale.control_plane.methods import METHODS
from kafscale.control_plane.partition import Partition
from kafscale.control_plane.tls import open_channel
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind

ASK_SECONDS_MAX: Final = 10.0
WORK_SECONDS_MAX: Final = 300.0
GRACE_SECONDS: Final = 10.0
"""How much later than its own deadline a drain may be answered."""
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),  # Brokers are on this side of any proxy.
    ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
    ("grpc.use_local_subchannel_pool", 1),  # A new client tries anew, without an old one's pauses.
)


class ControlClient:
    """A connection to the control plane of one broker."""

    def __init__(self, address: str, tls: ClientTls | None = None) -> None:
        """`address` is host:port, with brackets round the host if it is an IPv6 address.

        With `tls`, the broker has to show the right certificate, and is shown ours.
        """
        self.address = address
        self._tls = tls
        self._opened: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        """Raises `ConfigError` where the files of `tls` are of no use."""
        self._opened = await open_channel(self.address, self._tls, _OPTIONS)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    @property
    def _channel(self) -> grpc.aio.Channel:
        assert self._opened is not None, "not entered"
        return self._opened

    async def status(
        self, *, with_partitions: bool = True, with_samples: bool = False
    ) -> BrokerStatusResponse:
        request = BrokerStatusRequest(
            without_partitions=not with_partitions, with_samples=with_samples
        )
        answer: BrokerStatusResponse = await self._ask("GetStatus", request, ASK_SECONDS_MAX)
        return answer

    async def drain(
        self, partitions: Iterable[Partition] = (), *, reason: str = "", deadline_seconds: int = 0
    ) -> DrainPartitionsResponse:
        """Have partitions handed over to other brokers; none named is everything."""
        request = DrainPartitionsRequest(
            partitions=[partition.message for partition in partitions],
            reason=reason,
            deadline_seconds=deadline_seconds,
        )
        seconds_max = deadline_seconds + GRACE_SECONDS if deadline_seconds else WORK_SECONDS_MAX
        answer: DrainPartitionsResponse = await self._ask("DrainPartitions", request, seconds_max)
        return answer

    async def flush(self, partitions: Iterable[Partition] | None = None) -> list[Partition]:
        """Have segments made of partitions, or of all that the broker owns; which it did."""
        request = TriggerFlushRequest(
            partitions=[partition.message for partition in partitions or ()],
            all_assigned=partitions is None,
        )
        answer: TriggerFlushResponse = await self._ask("TriggerFlush", request, WORK_SECONDS_MAX)
        return [Partition.of(flushed) for flushed in answer.flushed]

    async def seal_tail(self, partition: Partition) -> SealTailResponse:
        request = SealTailRequest(partition=partition.message)
        answer: SealTailResponse = await self._ask("SealTail", request, WORK_SECONDS_MAX)
        return answer

    async def swap_segments(self, partition: Partition, job: str) -> SwapSegmentsResponse:
        request = SwapSegmentsRequest(partition=partition.message, job=job)
        answer: SwapSegmentsResponse = await self._ask("SwapSegments", request, WORK_SECONDS_MAX)
        return answer

    async def rebalance(self) -> RebalanceResponse:
        """Have the controller, which this has to be, plan now; what moves."""
        answer: RebalanceResponse = await self._ask(
            "Rebalance", RebalanceRequest(), WORK_SECONDS_MAX
        )
        return answer

    async def send_metrics(self, samples: AsyncIterator[MetricsSample]) -> Ack:
        """Send samples as long as there are some."""
        method = METHODS["StreamMetrics"]
        call = self._channel.stream_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            answer: Ack = await call(samples)
        except grpc.aio.AioRpcError as error:
            raise refusal(self.address, error) from None
        return answer

    async def watch_assignments(
        self, broker_id: str = "", *, cluster_id: str = ""
    ) -> AsyncGenerator[PartitionAssignmentEvent, None]:
        """Everything that is assigned, to one broker or to all, and then every change.

        An operator is told of which cluster.
        """
        method = METHODS["WatchAssignments"]
        call = self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )(AssignmentWatchRequest(broker_id=broker_id, cluster_id=cluster_id))
        try:
            async for event in call:
                yield event
        except grpc.aio.AioRpcError as error:
            raise refusal(self.address, error) from None
        finally:
            call.cancel()

    async def _ask(self, name: str, request: Any, seconds_max: float) -> Any:
        method = METHODS[name]
        call = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            with tracing.span(f"control {name}", SpanKind.CLIENT, {"server.address": self.address}):
                return await call(request, timeout=seconds_max, metadata=tracing.inject_context())
        except grpc.aio.AioRpcError as error:
            raise refusal(self.address, error) from None
