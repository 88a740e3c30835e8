"""A client of the control plane of a broker or of the operator.

Invariants: every request has a time limit, and every failure is raised as a `ControlError` with a
readable message.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from typing import Any, Final, Self

import grpc

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.errors import BROKER_KEY, UnreachableError, control_error
from kafscale.control_plane.messages import (
    METHODS,
    Ack,
    AddPartitionsToTransactionRequest,
    AddPartitionsToTransactionResponse,
    AssignmentWatchRequest,
    BrokerStatusRequest,
    BrokerStatusResponse,
    DrainPartitionsRequest,
    DrainPartitionsResponse,
    MetricsSample,
    Partition,
    PartitionAssignmentEvent,
    RebalanceRequest,
    RebalanceResponse,
    SealTailRequest,
    SealTailResponse,
    SwapSegmentsRequest,
    SwapSegmentsResponse,
    TransactionMarker,
    TriggerFlushRequest,
    TriggerFlushResponse,
    WriteTransactionMarkersRequest,
    WriteTransactionMarkersResponse,
)
from kafscale.control_plane.tls import open_channel
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind

PING_AFTER_SECONDS: Final = 7.0
"""The keepalive interval while a request waits. Packets to a machine that is lost get no answer at
all: without pings, the kernel would resend them for a quarter of an hour."""
PING_SECONDS_MAX: Final = 3.0
RECONNECT_SECONDS_MIN: Final = 0.1
RECONNECT_SECONDS_MAX: Final = 1.0
"""A broker that was restarted is found within a second."""
CONNECT_SECONDS_MAX: Final = 5.0

REQUEST_SECONDS_MAX: Final = 10.0
WORK_SECONDS_MAX: Final = 300.0
GRACE_SECONDS: Final = 10.0
"""How much later than its own deadline a drain may respond."""
RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024


class ControlClient:
    """A connection to the control plane of one broker."""

    def __init__(
        self,
        address: str,
        tls: ClientTls | None = None,
        broker_id: str = "",
        *,
        ping_after_seconds: float = PING_AFTER_SECONDS,
        ping_seconds_max: float = PING_SECONDS_MAX,
    ) -> None:
        """`address` is host:port, with brackets around an IPv6 host.

        With `tls`, both sides authenticate with certificates. With `broker_id`, requests fail if
        another broker receives them: its own 127.0.0.1 is an address that every machine has.
        """
        self.address = address
        self._options = _options(ping_after_seconds, ping_seconds_max)
        self._tls = tls
        self._metadata = ((BROKER_KEY, broker_id),) if broker_id else ()
        self._open_channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        """Raises `ConfigError` if the files of `tls` are invalid."""
        self._open_channel = await open_channel(self.address, self._tls, self._options)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    @property
    def _channel(self) -> grpc.aio.Channel:
        assert self._open_channel is not None, "not entered"
        return self._open_channel

    async def status(
        self, *, with_partitions: bool = True, with_samples: bool = False
    ) -> BrokerStatusResponse:
        request = BrokerStatusRequest(
            without_partitions=not with_partitions, with_samples=with_samples
        )
        response: BrokerStatusResponse = await self._call("GetStatus", request, REQUEST_SECONDS_MAX)
        return response

    async def drain(
        self, partitions: Iterable[Partition] = (), *, reason: str = "", deadline_seconds: int = 0
    ) -> DrainPartitionsResponse:
        """Transfer partitions to other brokers; all, if none is named."""
        request = DrainPartitionsRequest(
            partitions=[partition.message for partition in partitions],
            reason=reason,
            deadline_seconds=deadline_seconds,
        )
        seconds_max = deadline_seconds + GRACE_SECONDS if deadline_seconds else WORK_SECONDS_MAX
        response: DrainPartitionsResponse = await self._call(
            "DrainPartitions", request, seconds_max
        )
        return response

    async def flush(self, partitions: Iterable[Partition] | None = None) -> list[Partition]:
        """Roll partitions into segments, or all that the broker owns; return which."""
        request = TriggerFlushRequest(
            partitions=[partition.message for partition in partitions or ()],
            all_assigned=partitions is None,
        )
        response: TriggerFlushResponse = await self._call("TriggerFlush", request, WORK_SECONDS_MAX)
        return [Partition.of(flushed) for flushed in response.flushed]

    async def seal_tail(self, partition: Partition) -> SealTailResponse:
        request = SealTailRequest(partition=partition.message)
        response: SealTailResponse = await self._call("SealTail", request, WORK_SECONDS_MAX)
        return response

    async def swap_segments(
        self, partition: Partition, job: str, checksums: Sequence[int] = ()
    ) -> SwapSegmentsResponse:
        request = SwapSegmentsRequest(partition=partition.message, job=job, checksums=checksums)
        response: SwapSegmentsResponse = await self._call("SwapSegments", request, WORK_SECONDS_MAX)
        return response

    async def rebalance(self) -> RebalanceResponse:
        """Make the controller, which this broker must be, plan now; return the moves."""
        response: RebalanceResponse = await self._call(
            "Rebalance", RebalanceRequest(), WORK_SECONDS_MAX
        )
        return response

    async def write_transaction_markers(
        self, markers: Iterable[TransactionMarker], seconds_max: float = REQUEST_SECONDS_MAX
    ) -> Sequence[int]:
        """Write markers; returns the error code of each partition of each marker, in order."""
        response: WriteTransactionMarkersResponse = await self._call(
            "WriteTransactionMarkers", WriteTransactionMarkersRequest(markers=markers), seconds_max
        )
        return response.error_codes

    async def add_partitions_to_transaction(
        self, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        """Ask a coordinator; returns the error code of each partition, in order."""
        response: AddPartitionsToTransactionResponse = await self._call(
            "AddPartitionsToTransaction", request, REQUEST_SECONDS_MAX
        )
        return response.error_codes

    async def send_metrics(self, samples: AsyncIterator[MetricsSample]) -> Ack:
        """Send samples until the iterator ends."""
        method = METHODS["StreamMetrics"]
        call = self._channel.stream_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            response: Ack = await call(samples, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise control_error(self.address, error) from None
        return response

    async def watch_assignments(
        self, broker_id: str = "", *, cluster_id: str = ""
    ) -> AsyncGenerator[PartitionAssignmentEvent, None]:
        """Yield everything that is assigned, to one broker or to all, and then every change.

        An operator needs the cluster id.
        """
        method = METHODS["WatchAssignments"]
        call = self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )(
            AssignmentWatchRequest(broker_id=broker_id, cluster_id=cluster_id),
            metadata=self._metadata,
        )
        try:
            async for event in call:
                yield event
        except grpc.aio.AioRpcError as error:
            raise control_error(self.address, error) from None
        finally:
            call.cancel()

    async def _call(self, name: str, request: Any, seconds_max: float) -> Any:
        method = METHODS[name]
        call = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            with tracing.span(f"control {name}", SpanKind.CLIENT, {"server.address": self.address}):
                metadata = (*self._metadata, *(tracing.inject_context() or ()))
                return await call(request, timeout=seconds_max, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise control_error(self.address, error) from None
        except grpc.aio.UsageError:
            raise self._closed_error() from None
        except asyncio.CancelledError:
            # gRPC cancels the calls of a channel that is closed, although their tasks go on.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise self._closed_error() from None

    def _closed_error(self) -> UnreachableError:
        return UnreachableError(self.address, "CANCELLED", "the client was closed")


def _options(ping_after_seconds: float, ping_seconds_max: float) -> Sequence[tuple[str, int]]:
    return (
        ("grpc.enable_http_proxy", 0),  # Brokers are reached without a proxy.
        ("grpc.max_receive_message_length", RESPONSE_BYTES_MAX),
        ("grpc.use_local_subchannel_pool", 1),  # A new client has no backoff of an old one.
        ("grpc.keepalive_time_ms", int(ping_after_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(ping_seconds_max * 1000)),
        # Of pings that measure the bandwidth: while one waits, by default a minute, no other is
        # sent.
        ("grpc.http2.ping_timeout_ms", int(ping_seconds_max * 1000)),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", int(RECONNECT_SECONDS_MIN * 1000)),
        ("grpc.max_reconnect_backoff_ms", int(RECONNECT_SECONDS_MAX * 1000)),
        # Despite its name, this is the timeout of one connection attempt.
        ("grpc.min_reconnect_backoff_ms", int(CONNECT_SECONDS_MAX * 1000)),
        # A broker that was replaced has a new address under the same name.
        ("grpc.dns_min_time_between_resolutions_ms", int(RECONNECT_SECONDS_MAX * 1000)),
    )
