"""The settings of Kafscale: declared once, read in one place, refused when wrong.

They are declared in `serving`, `groups` and `stores`, put together in `model`, read by `loading`
from `file` and `environment`, checked against each other in `contradictions` and explained by
`documentation`.
"""

from kafscale.config.loader import DEFAULT_FILE, load
from kafscale.config.model import SETTINGS, VARIABLES, Config
from kafscale.config.schema import MASK, Setting

__all__ = ["DEFAULT_FILE", "MASK", "SETTINGS", "VARIABLES", "Config", "Setting", "load"]
