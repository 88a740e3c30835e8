"""How the etcd of a cluster is, as the reconciler is told."""

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.operator.conditions import Condition
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.status import EtcdStatus


class EtcdState(msgspec.Struct, kw_only=True):
    """How an etcd is."""

    access: EtcdAccess
    is_ready: bool
    """Whether brokers can use it."""
    conditions: list[Condition]
    settings: Etcd | None = None
    """How it was asked, and can be again; always there if it is ready."""
    members: int | None = None
    members_ready: int | None = None
    database_bytes: int | None = None
    """The size of the largest database."""
    is_busy: bool = False
    """Whether something was done to it, so that it is worth a look soon."""

    def status(self) -> EtcdStatus:
        """The same for the resource's status."""
        return EtcdStatus(
            managed=self.access.is_managed,
            endpoints=list(self.access.endpoints),
            members=self.members,
            members_ready=self.members_ready,
            database_bytes=self.database_bytes,
        )
