"""The CRDs, made from the specs: what Kubernetes is told about our two resources."""

from kafscale.operator.crd.definitions import definitions
from kafscale.operator.crd.rendering import rendered, rendered_schemas

__all__ = ["definitions", "rendered", "rendered_schemas"]
