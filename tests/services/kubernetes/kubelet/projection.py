"""Volumes projected from objects: their files, and atomic updates.

The directory has a link `..data` to the current files, and for each file a link through it. So a
reader that follows `..data` sees either all old files or all new ones.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from services.kubernetes.kubelet.environment import ConfigError, Manifest, Store, field, resource

MODE = 0o644
PROJECTED = ("configMap", "secret", "downwardAPI", "projected")
"""The kinds of volumes in this module."""


class File(NamedTuple):
    """Content and mode of a file."""

    content: bytes
    mode: int = MODE


Files = dict[str, File]
"""By path within the volume."""


def files(volume: Manifest, pod: Manifest, store: Store, tokens: Mapping[str, str]) -> Files:
    """The files of a volume; tokens are given by path, because they have to be requested."""
    [kind] = [kind for kind in PROJECTED if kind in volume]
    source = volume[kind]
    mode = source.get("defaultMode", MODE)
    if kind != "projected":
        return _source_files(kind, source, mode, pod, store)
    result: Files = {}
    for each in source.get("sources", ()):
        [(part, details)] = each.items()
        if part == "serviceAccountToken":
            result[details["path"]] = File(tokens[details["path"]].encode(), mode)
        else:
            result |= _source_files(part, details, mode, pod, store)
    return result


def token_requests(volume: Manifest) -> Iterable[Manifest]:
    """The tokens in a volume."""
    for source in volume.get("projected", {}).get("sources", ()):
        if "serviceAccountToken" in source:
            yield source["serviceAccountToken"]


def write(directory: Path, new_files: Files) -> None:
    """Replace the files of a directory atomically."""
    data = directory / "..data"
    previous = data.readlink() if data.is_symlink() else None
    index = int(previous.name.removeprefix("..")) + 1 if previous else 0
    version_directory = directory / f"..{index}"
    for path, file in new_files.items():
        target_path = version_directory / path
        target_path.parent.mkdir(parents=True, exist_ok=True)
        target_path.write_bytes(file.content)
        target_path.chmod(file.mode)
    version_directory.mkdir(exist_ok=True)
    link = directory / "..data.new"
    link.symlink_to(version_directory.name)
    link.rename(data)
    top_level = {path.partition("/")[0] for path in new_files}
    existing = {path.name for path in directory.iterdir() if not path.name.startswith("..")}
    for name in top_level - existing:
        (directory / name).symlink_to(f"..data/{name}")
    for name in existing - top_level:
        (directory / name).unlink()
    if previous:
        shutil.rmtree(directory / previous)


def _source_files(kind: str, source: Manifest, mode: int, pod: Manifest, store: Store) -> Files:
    if kind == "downwardAPI":
        return {
            item["path"]: File(_downward(item, pod).encode(), item.get("mode", mode))
            for item in source.get("items", ())
        }
    is_config = kind == "configMap"
    name = source.get("name") or source["secretName"]
    contents = (store.config_map if is_config else store.secret)(name)
    if contents is None:
        if source.get("optional"):
            return {}
        raise ConfigError(f'{"configmap" if is_config else "secret"} "{name}" not found')
    items = source.get("items") or [{"key": key, "path": key} for key in contents]
    result: Files = {}
    for item in items:
        if item["key"] in contents:
            result[item["path"]] = File(contents[item["key"]], item.get("mode", mode))
        elif not source.get("optional"):
            raise ConfigError(f"{kind} {name} references non-existent key: {item['key']}")
    return result


def _downward(item: Manifest, pod: Manifest) -> str:
    if "fieldRef" in item:
        return field(pod, item["fieldRef"]["fieldPath"])
    reference = item["resourceFieldRef"]
    named = {each["name"]: each for each in pod["spec"]["containers"]}
    owner = named[reference["containerName"]]
    return resource(owner, reference["resource"], reference.get("divisor", "1"))
