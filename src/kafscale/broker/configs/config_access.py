"""Who may see and change configs, and who has changed them.

The law: configs belong to the thing that they are of. Those of topics and groups are guarded with
them, all others with the cluster. Which configs there are is said in `config_resources`.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.broker.configs import resources as configs_resources
from kafscale.broker.configs.resources import NamedResource
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import CLUSTER_NAME, Operation, ResourceType

_OWN: Final[dict[int, ResourceType]] = {
    configs_resources.ResourceType.TOPIC: ResourceType.TOPIC,
    configs_resources.ResourceType.GROUP: ResourceType.GROUP,
}
"""What is guarded under its own name."""


def demand(context: RequestContext, operation: Operation, resource: NamedResource) -> None:
    """Raise what is told to somebody who may not do this to the configs of a resource."""
    owner = _OWN.get(resource.resource_type)
    if owner is None:
        context.demand(operation, ResourceType.CLUSTER, CLUSTER_NAME)
    else:
        context.demand(operation, owner, resource.resource_name)


def tell(
    context: RequestContext,
    resources: Iterable[NamedResource],
    errors: Iterable[KafscaleError | None],
) -> None:
    """Write down whose configs have changed: those without an error."""
    for resource, error in zip(resources, errors, strict=True):
        if error is None:
            kind = configs_resources.ResourceType(resource.resource_type).name.lower()
            context.broker.audit.changed(
                context, "configs changed", resource_type=kind, resource=resource.resource_name
            )
