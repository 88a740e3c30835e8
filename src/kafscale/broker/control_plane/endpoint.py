"""Starts the control plane of a broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.control_plane.service import BrokerControlService, BrokerParts
from kafscale.broker.network.http import AdminHttp
from kafscale.broker.network.sockets import Address
from kafscale.broker.services import Services
from kafscale.config import Config
from kafscale.config.sections.security import PeerTls
from kafscale.control_plane.allowed_subjects import AllowedSubjects
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.tls import ServerTls
from kafscale.security.reloading_file import WatchedFiles


def control_address(config: Config, http: AdminHttp) -> Address:
    """The address of the control plane, for the registration."""
    if not config.control.tls.enabled:
        return http.addresses[0]
    assert config.broker.control_port, "checked by the config validation"
    return config.broker.control_host, config.broker.control_port


@asynccontextmanager
async def control_plane(
    services: Services, node: ClusterNode, http: AdminHttp
) -> AsyncIterator[ControlServer]:
    """Serve the control plane inside the block.

    Without TLS, that is through `http`, and at its own port if one is set; with TLS, at its own
    port only.
    """
    settings, security = services.config.broker, services.config.control
    broker = BrokerControlService(_parts(services, node))
    tls = _tls(security.tls) if security.tls.enabled else None
    allowed_subjects = AllowedSubjects(security.allowed_subjects) if tls else None
    server = ControlServer(broker, tls=tls, allowed_subjects=allowed_subjects)
    await server.start(settings.control_host, settings.control_port)
    if tls is None:
        http.serve_control(server.dial)
    try:
        yield server
    finally:
        await server.close()
        await broker.close()


def _tls(settings: PeerTls) -> ServerTls:
    files = WatchedFiles([settings.cert_file, settings.key_file, settings.ca_file])
    return ServerTls(settings, files.changed)


def _parts(services: Services, node: ClusterNode) -> BrokerParts:
    return BrokerParts(
        broker_id=services.node_id,
        cluster_id=services.cluster_id,
        namespace=services.config.s3.namespace,
        cache=services.cluster,
        catalog=services.catalog,
        storage=services.storage,
        swap=services.storage.swap_segments,
        registration=services.registration,
        drainer=node.drainer,
        controller=node.controller,
        problems=services.health.problems,
        store_health=lambda: services.metrics.store_health.state,
        clock=services.clock,
    )
