"""Volumes that are made of objects: which files they have, and how those change all at once.

A directory of such files has a link `..data` to the real ones, and for each file a link through it.
So a reader who follows `..data` sees either all old files or all new ones.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from services.kubernetes.kubelet.environment import ConfigError, Manifest, Store, field, resource

MODE = 0o644
PROJECTED = ("configMap", "secret", "downwardAPI", "projected")
"""The kinds of volumes that this module is about."""


class File(NamedTuple):
    """What a file holds, and who may read it."""

    content: bytes
    mode: int = MODE


Files = dict[str, File]
"""By path within the volume."""


def files(volume: Manifest, pod: Manifest, store: Store, tokens: Mapping[str, str]) -> Files:
    """The files of a volume; tokens of accounts are by path, as they have to be asked for."""
    [kind] = [kind for kind in PROJECTED if kind in volume]
    source = volume[kind]
    mode = source.get("defaultMode", MODE)
    if kind != "projected":
        return _source_files(kind, source, mode, pod, store)
    made: Files = {}
    for each in source.get("sources", ()):
        [(part, wanted)] = each.items()
        if part == "serviceAccountToken":
            made[wanted["path"]] = File(tokens[wanted["path"]].encode(), mode)
        else:
            made |= _source_files(part, wanted, mode, pod, store)
    return made


def token_requests(volume: Manifest) -> Iterable[Manifest]:
    """The tokens that a volume has."""
    for source in volume.get("projected", {}).get("sources", ()):
        if "serviceAccountToken" in source:
            yield source["serviceAccountToken"]


def write(directory: Path, wanted: Files) -> None:
    """Have a directory show these files, at once."""
    data = directory / "..data"
    former = data.readlink() if data.is_symlink() else None
    index = int(former.name.removeprefix("..")) + 1 if former else 0
    room = directory / f"..{index}"
    for path, file in wanted.items():
        place = room / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(file.mode)
    room.mkdir(exist_ok=True)
    link = directory / "..data.new"
    link.symlink_to(room.name)
    link.rename(data)
    tops = {path.partition("/")[0] for path in wanted}
    shown = {path.name for path in directory.iterdir() if not path.name.startswith("..")}
    for name in tops - shown:
        (directory / name).symlink_to(f"..data/{name}")
    for name in shown - tops:
        (directory / name).unlink()
    if former:
        shutil.rmtree(directory / former)


def _source_files(kind: str, source: Manifest, mode: int, pod: Manifest, store: Store) -> Files:
    if kind == "downwardAPI":
        return {
            item["path"]: File(_downward(item, pod).encode(), item.get("mode", mode))
            for item in source.get("items", ())
        }
    is_config = kind == "configMap"
    name = source.get("name") or source["secretName"]
    found = (store.config_map if is_config else store.secret)(name)
    if found is None:
        if source.get("optional"):
            return {}
        raise ConfigError(f'{"configmap" if is_config else "secret"} "{name}" not found')
    items = source.get("items") or [{"key": key, "path": key} for key in found]
    made: Files = {}
    for item in items:
        if item["key"] in found:
            made[item["path"]] = File(found[item["key"]], item.get("mode", mode))
        elif not source.get("optional"):
            raise ConfigError(f"{kind} {name} references non-existent key: {item['key']}")
    return made


def _downward(item: Manifest, pod: Manifest) -> str:
    if "fieldRef" in item:
        return field(pod, item["fieldRef"]["fieldPath"])
    wanted = item["resourceFieldRef"]
    named = {each["name"]: each for each in pod["spec"]["containers"]}
    owner = named[wanted["containerName"]]
    return resource(owner, wanted["resource"], wanted.get("divisor", "1"))
