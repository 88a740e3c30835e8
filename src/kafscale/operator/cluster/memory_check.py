"""Whether brokers fit into their memory, and what autoscaling makes of it. Pure.

A cache that is full is a cache that works. If it is larger than what autoscaling takes for much,
brokers are added for no reason, up to the most that there may be; if it is larger than what a
container may have, brokers are killed. Both are told before they happen.
"""

from typing import Final

from kafscale.config.sections.storage import Storage
from kafscale.operator.conditions import Condition, bad, ok
from kafscale.operator.manifests.settings_tree import value_at
from kafscale.operator.spec.cluster import Cluster
from kafscale.text.units import MIB, parse_size

FITS: Final = "MemoryFits"
PROCESS_BYTES: Final = 200 * MIB
"""What a broker needs besides: measured at rest, and rounded up."""
TAILS_BYTES: Final = Storage().tail_bytes_max
"""The default of `storage.maxTailBytes`: what was just written, and is not in segments yet."""


def memory_condition(cluster: Cluster) -> Condition:
    """Whether the cache that is asked for goes with the memory that is."""
    spec = cluster.spec
    tails = value_at(spec.config.settings, "storage.maxTailBytes")
    tails_bytes = TAILS_BYTES if tails is None else parse_size(str(tails))
    needed = parse_size(spec.config.cache_size) + tails_bytes + PROCESS_BYTES
    limit = parse_size(spec.brokers.resources.limits.memory)
    told = f"a broker with a full cache takes about {needed // MIB} MiB"
    if needed > limit:
        return bad(
            FITS,
            "AboveLimit",
            f"{told}, and is killed at {limit // MIB} MiB: raise brokers.resources.limits.memory"
            " or lower config.cacheSize",
        )
    percent = spec.autoscaling.target_memory_utilization
    much = parse_size(spec.brokers.resources.requests.memory) * percent // 100
    if spec.autoscaling.enabled and needed > much:
        return bad(
            FITS,
            "AboveAutoscalingTarget",
            f"{told}, and autoscaling adds brokers above {much // MIB} MiB: raise"
            " brokers.resources.requests.memory or autoscaling.targetMemoryUtilization, or lower"
            " config.cacheSize",
        )
    return ok(FITS, "Fits", told)
