"""The environment variables of a container, as Kubernetes builds them. Pure.

The caller provides the pod, the Services of its namespace and a `Store` of ConfigMaps and Secrets.
Something missing there is a `ConfigError`, in Kubernetes' words.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_UP, Decimal
from typing import Any, Protocol

Manifest = Mapping[str, Any]

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_FACTORS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}


class ConfigError(Exception):
    """A pod refers to a missing object, which may be created later."""


class Store(Protocol):
    """ConfigMaps and Secrets of one namespace."""

    def config_map(self, name: str) -> Mapping[str, bytes] | None: ...

    def secret(self, name: str) -> Mapping[str, bytes] | None: ...


def contents(manifest: Manifest) -> dict[str, bytes]:
    """The data of a ConfigMap or a Secret, by key."""
    encoded = manifest.get("data") or {}
    if manifest["kind"] == "Secret":
        return {key: base64.b64decode(value) for key, value in encoded.items()}
    binary = manifest.get("binaryData") or {}
    plain = {key: value.encode() for key, value in encoded.items()}
    return plain | {key: base64.b64decode(value) for key, value in binary.items()}


def variables(
    pod: Manifest,
    container: Manifest,
    image: Mapping[str, str],
    services: Iterable[Manifest],
    store: Store,
) -> dict[str, str]:
    """All variables of a container; later ones override earlier ones."""
    result = dict(image) | {"HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"]}
    result |= service_links(pod, services)
    for source in container.get("envFrom", ()):
        prefix = source.get("prefix", "")
        for key, content in _referred(source, store, ("configMapRef", "secretRef")).items():
            result[prefix + key] = content.decode()
    for variable in container.get("env", ()):
        if "valueFrom" in variable:
            value = _value_from(variable["valueFrom"], pod, container, store)
            if value is not None:
                result[variable["name"]] = value
        else:
            result[variable["name"]] = expand(variable.get("value", ""), result)
    return result


def expand(text: str, known: Mapping[str, str]) -> str:
    """Substitute variables; unknown ones stay as they are.

    >>> expand("$(A)-$(B) $$(A)", {"A": "1"})
    '1-$(B) $(A)'
    """

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[1] is None else known.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def service_links(pod: Manifest, services: Iterable[Manifest]) -> dict[str, str]:
    """Variables of Services: the API server's always, those of the namespace unless disabled."""
    result: dict[str, str] = {}
    links_all = pod["spec"].get("enableServiceLinks", True)
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        is_api = (metadata["namespace"], metadata["name"]) == ("default", "kubernetes")
        is_in_namespace = metadata["namespace"] == pod["metadata"]["namespace"]
        address = spec.get("clusterIP", "None")
        if address != "None" and (is_api or (is_in_namespace and links_all)):
            result |= _links(metadata["name"], address, spec.get("ports", ()))
    return result


def _links(name: str, address: str, ports: Sequence[Manifest]) -> dict[str, str]:
    upper = name.upper().replace("-", "_")
    result = {f"{upper}_SERVICE_HOST": address}
    for index, port in enumerate(ports):
        number, protocol = str(port["port"]), port.get("protocol", "TCP")
        url = f"{protocol.lower()}://{address}:{number}"
        if index == 0:
            result |= {f"{upper}_SERVICE_PORT": number, f"{upper}_PORT": url}
        if port.get("name"):
            result[f"{upper}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = number
        link = f"{upper}_PORT_{number}_{protocol}"
        result |= {link: url, f"{link}_PROTO": protocol.lower()}
        result |= {f"{link}_PORT": number, f"{link}_ADDR": address}
    return result


def field(pod: Manifest, path: str) -> str:
    """A field of the pod, as text."""
    if keyed := _KEYED.fullmatch(path):
        return pod["metadata"].get(keyed[1], {}).get(keyed[2], "")
    if path in {"metadata.labels", "metadata.annotations"}:
        pairs = pod["metadata"].get(path.partition(".")[2], {})
        return "".join(f'{key}="{value}"\n' for key, value in sorted(pairs.items()))
    value: Any = pod
    for step in path.split("."):
        value = value.get(step, {})
    return value if isinstance(value, str) else ""


def resource(container: Manifest, path: str, divisor: str = "1") -> str:
    """A quantity of the container's `resources`, in units of the divisor, rounded up.

    >>> resource({"resources": {"limits": {"cpu": "1500m"}}}, "limits.cpu")
    '2'
    >>> resource({"resources": {"limits": {"memory": "1Gi"}}}, "limits.memory", "1Mi")
    '1024'
    """
    kind, _, name = path.partition(".")
    resources = container.get("resources", {})
    amount = resources.get(kind, {}).get(name) or resources.get("limits", {}).get(name) or "0"
    units = quantity(amount) / quantity(divisor if divisor != "0" else "1")
    return str(int(units.to_integral_value(ROUND_UP)))


def quantity(text: str) -> Decimal:
    """A quantity, as Kubernetes writes it.

    >>> int(quantity("2Ki")), float(quantity("100m"))
    (2048, 0.1)
    """
    number = text.rstrip("mkKMGTi")
    return Decimal(number) * _FACTORS[text.removeprefix(number)]


def _value_from(source: Manifest, pod: Manifest, container: Manifest, store: Store) -> str | None:
    if "fieldRef" in source:
        return field(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        containers = pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
        by_name = {each["name"]: each for each in containers}
        owner = by_name.get(reference.get("containerName", ""), container)
        return resource(owner, reference["resource"], reference.get("divisor", "1"))
    [(kind, reference)] = source.items()
    data = _referred(source, store, ("configMapKeyRef", "secretKeyRef"))
    if reference["key"] in data:
        return data[reference["key"]].decode()
    if reference.get("optional"):
        return None
    raise ConfigError(f"couldn't find key {reference['key']} in {kind} {reference['name']}")


def _referred(source: Manifest, store: Store, kinds: tuple[str, str]) -> Mapping[str, bytes]:
    """The data of the ConfigMap or Secret that a source refers to by one of these two keys."""
    of_config, of_secret = kinds
    lookups: Mapping[str, Callable[[str], Mapping[str, bytes] | None]] = {
        of_config: store.config_map,
        of_secret: store.secret,
    }
    for kind, lookup in lookups.items():
        if reference := source.get(kind):
            data = lookup(reference["name"])
            if data is None and not reference.get("optional"):
                what = "configmap" if kind == of_config else "secret"
                raise ConfigError(f'{what} "{reference["name"]}" not found')
            return data or {}
    raise ConfigError(f"unsupported source {', '.join(source)}")
