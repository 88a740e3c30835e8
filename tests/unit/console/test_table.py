"""The table of routes: complete, without two of the same name, and in agreement with its law."""

from importlib import import_module
from pkgutil import iter_modules

import msgspec
import pytest

from kafscale.console import api
from kafscale.console.api.routes import TABLE
from kafscale.console.schema.base import Asked


def test_no_module_is_forgotten():
    modules = [
        import_module(f"{api.__name__}.{found.name}") for found in iter_modules(api.__path__)
    ]
    declared = [route for module in modules for route in getattr(module, "ROUTES", ())]
    assert {(route.method, route.path) for route in TABLE} == {
        (route.method, route.path) for route in declared
    }


def test_each_is_there_once():
    assert len({(route.method, route.path) for route in TABLE}) == len(TABLE)


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_keeps_the_law(route):
    assert route.path.startswith("/")
    assert route.handle.__module__.startswith(api.__name__)
    if route.method == "GET":
        assert route.takes is None
        assert route.gives is not None
    for shape in (route.takes, route.query):
        assert shape is None or issubclass(shape, Asked)
    if route.gives is not None:
        assert msgspec.json.schema(route.gives)
