"""The CustomResourceDefinitions, generated from the specs."""

from kafscale.operator.crd.definitions import definitions
from kafscale.operator.crd.rendering import render_definitions, render_schemas

__all__ = ["definitions", "render_definitions", "render_schemas"]
