"""Kafscale's settings: declared once, loaded from a file and the environment, and validated.

`sections` declares the settings, `model` combines them, `loader` reads them from the environment
and a `file`, and `validation` checks combinations.
"""

from kafscale.config.loader import DEFAULT_FILE, load
from kafscale.config.model import SETTINGS, VARIABLES, Config
from kafscale.config.schema import MASK, Setting

__all__ = ["DEFAULT_FILE", "MASK", "SETTINGS", "VARIABLES", "Config", "Setting", "load"]
