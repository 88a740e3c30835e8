"""All targets, by name."""

from fuzz import logins, messages, metadata, objects, records, texts, values
from fuzz.target import Target

MODULES = (messages, records, objects, metadata, logins, texts, values)
TARGETS: dict[str, Target] = {each.name: each for module in MODULES for each in module.TARGETS}

assert len(TARGETS) == sum(len(module.TARGETS) for module in MODULES), "names are unique"
