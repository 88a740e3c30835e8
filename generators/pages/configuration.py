"""docs/configuration.md: every setting, with the docstring of its field."""

import dataclasses
import inspect
import textwrap

from kafscale.config.model import ADDRESSES, CONFIG_FILE_VARIABLE, SETTINGS, Config
from kafscale.config.schema import Setting

_INTRODUCTION = """\
<!-- Written by `make docs` from the settings in the code; edit those instead. -->

# Configuration

This page lists every setting: what it means, what it takes, its default and its environment
variable. `kafscale config show` prints the values in effect and where each was set;
`kafscale config check` validates them.

## Where settings come from

1. The defaults on this page. With nothing set, Kafscale runs embedded: one broker, with records and
   metadata in one directory of the machine.
2. The file `/etc/kafscale/broker.yaml`, if it exists. `--config` or the variable
   `KAFSCALE_CONFIG_FILE` name another file, which must exist.
3. Environment variables, which override the file.
4. Options of `kafscale broker`, which override both: `--listen`, `--namespace`,
   `--security-protocol`, `--tls-cert-file`, `--tls-key-file`.

```yaml
s3:
  bucket: kafscale-prod-us-east-1
etcd:
  endpoints: [etcd-0:2379, etcd-1:2379, etcd-2:2379]
cache:
  segmentCacheSize: 4Gi
```

Kafscale does not start with a key or a `KAFSCALE_*` variable that is not on this page, with an
invalid value, or with settings that contradict each other. All problems are reported at once.
Variables that Kubernetes sets for Services, such as those ending in `_SERVICE_HOST`, are ignored.
The effective configuration is logged at start. Secrets are masked there and everywhere else.

## How values are written

| type | examples | |
|---|---|---|
| size | `4096`, `100Mi`, `2GiB`, `100MB` | `Ki Mi Gi Ti` count in 1024s, `k M G T` in 1000s |
| duration | `500ms`, `30s`, `1m30s` | `ms s m h`; a number alone where the name ends in its unit |
| true or false | `true`, `false` | `yes`, `no`, `1` and `0` are accepted too |
| list | `[a, b]`, or `a,b` in a variable | |
"""


def page() -> str:
    """The text of the page."""
    parts = [_INTRODUCTION]
    for field in dataclasses.fields(Config):
        settings = [s for s in SETTINGS if s.attribute.startswith(f"{field.name}.")]
        if settings:
            heading = f"## {field.name}\n\n{inspect.getdoc(field.type)}\n"
            parts += [heading, *(_section(setting) for setting in settings)]
    parts.append(_variables())
    return "\n".join(parts)


def _section(setting: Setting) -> str:
    default = setting.type.show(setting.default)
    lines = [
        f"### `{setting.path}`\n",
        f"{textwrap.fill(setting.description, 100)}\n",
        f"* default: {f'`{default}`' if default else 'empty'}",
        textwrap.fill(f"* takes: {setting.type.takes}", 100, subsequent_indent="  "),
        f"* variable: {', '.join(f'`{variable}`' for variable in setting.variables)}",
    ]
    if setting.secret:
        lines.append("* secret: masked in logs and output")
    return "\n".join(lines) + "\n"


def _variables() -> str:
    """The table of all environment variables."""
    rows = {variable: f"`{s.path}`" for s in SETTINGS for variable in s.variables}
    rows |= {
        variable: f"`{host.path}` and `{port.path}`, as `host:port` or `:port`"
        for variable, (host, port) in ADDRESSES.items()
    }
    rows[CONFIG_FILE_VARIABLE] = "the file to read"
    lines = [f"| `{variable}` | {rows[variable]} |" for variable in sorted(rows)]
    return "\n".join(
        [
            "## All variables\n",
            "A variable for a single setting overrides one for a whole address, and",
            "`KAFSCALE_CACHE_BYTES` overrides `KAFSCALE_CACHE_SIZE`.\n",
            "| variable | sets |",
            "|---|---|",
            *lines,
            "",
        ]
    )
