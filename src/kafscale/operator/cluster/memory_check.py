"""Whether brokers fit into their memory, and what autoscaling makes of it. Pure.

A full cache is normal. If it exceeds the memory target of autoscaling, brokers are added for no
reason, up to the maximum; if it exceeds the memory limit of the container, brokers are killed. Both
are reported in advance.
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
TAIL_BYTES: Final = Storage().tail_bytes_max
"""The default of `storage.maxTailBytes`: records that are not in segments yet."""


def memory_condition(cluster: Cluster) -> Condition:
    """Whether the configured cache fits into the configured memory."""
    spec = cluster.spec
    tail_setting = value_at(spec.config.settings, "storage.maxTailBytes")
    tail_bytes = TAIL_BYTES if tail_setting is None else parse_size(str(tail_setting))
    needed = parse_size(spec.config.cache_size) + tail_bytes + PROCESS_BYTES
    limit = parse_size(spec.brokers.resources.limits.memory)
    estimate = f"a broker with a full cache needs about {needed // MIB} MiB"
    if needed > limit:
        return bad(
            FITS,
            "AboveLimit",
            f"{estimate}, and is killed at {limit // MIB} MiB: raise"
            " brokers.resources.limits.memory or lower config.cacheSize",
        )
    percent = spec.autoscaling.target_memory_utilization
    target_bytes = parse_size(spec.brokers.resources.requests.memory) * percent // 100
    if spec.autoscaling.enabled and needed > target_bytes:
        return bad(
            FITS,
            "AboveAutoscalingTarget",
            f"{estimate}, and autoscaling adds brokers above {target_bytes // MIB} MiB: raise"
            " brokers.resources.requests.memory or autoscaling.targetMemoryUtilization, or lower"
            " config.cacheSize",
        )
    return ok(FITS, "Fits", estimate)
