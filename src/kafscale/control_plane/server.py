"""The control plane of one broker: everything that is declared, answered with the broker's help."""

from collections.abc import Sequence

import grpc

from kafscale.control_plane.allowed_names import Admission
from kafscale.control_plane.assignment_feed import AssignmentFeed
from kafscale.control_plane.endpoint import ControlEndpoint, Streams
from kafscale.control_plane.interface import ControlledBroker
from kafscale.control_plane.methods import METHODS
from kafscale.control_plane.samples import Samples
from kafscale.control_plane.service import ControlService
from kafscale.control_plane.tls import ServerTls


class ControlServer:
    """Serves the control plane of one broker."""

    def __init__(
        self,
        broker: ControlledBroker,
        *,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        tls: ServerTls | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._broker = broker
        self._feed = AssignmentFeed(broker.holdings)
        answers = ControlService(broker, self._feed, Samples()).handlers()
        assert answers.keys() == METHODS.keys(), "every declared method is answered"
        self._endpoint = ControlEndpoint(
            str(broker.id), answers, interceptors=interceptors, tls=tls, admission=admission
        )

    @property
    def port(self) -> int | None:
        """The port of its own that it listens on, if there is one."""
        return self._endpoint.port

    async def start(self, host: str = "", port: int | None = None) -> None:
        """Serve who comes by `dial`, and at an address as well if a port is named; 0 is any."""
        self._broker.subscribe(self._feed.changed)
        await self._endpoint.start(host, port)

    async def dial(self) -> Streams:
        """A connection of its own to the server, as if from outside."""
        return await self._endpoint.dial()

    async def close(self) -> None:
        """Answer what is under way for a moment, and end the rest."""
        self._feed.close()
        await self._endpoint.close()
