"""The limit of what tasks return to the driver, through which the sink passes encoded records.

Spark adds up the results of all tasks, and fails the job above the limit without saying what the
results are. A task knows its own result only, so it reports the case in which that alone exceeds
the limit; see `docs/spark.md` for the other.
"""

import re
from typing import Final

from kafscale.errors import InvalidRequestError

SETTING: Final = "spark.driver.maxResultSize"

_DEFAULT: Final = "1g"
_UNITS: Final = "bkmgtp"
_SIZE: Final = re.compile(rf"([0-9]+)([{_UNITS}]?)b?")


def parse_limit(text: str | None) -> int | None:
    """Parse the setting; None if there is no limit. Without the setting, Spark's default applies.

    >>> parse_limit("512m"), parse_limit("1048576"), parse_limit("0"), parse_limit(None)
    (536870912, 1048576, None, 1073741824)
    """
    size = _SIZE.fullmatch((text or _DEFAULT).strip().lower())
    if size is None:
        return None  # Spark has checked it; a form that is unknown here is not limited here.
    number, unit = size.groups()
    return int(number) * 1024 ** _UNITS.index(unit or "b") or None


def check(size_bytes: int, limit: int | None) -> None:
    """Raise an error if the encoded records of a task are above the limit."""
    if limit is not None and size_bytes > limit:
        raise InvalidRequestError(
            f"a task has more than {limit} bytes of compressed records, but {SETTING} limits those"
            " of all tasks together, because the driver writes them: start the driver again with a"
            f" higher {SETTING} and enough spark.driver.memory. A micro-batch that has been planned"
            " keeps its records: maxOffsetsPerTrigger and more partitions only help the next ones"
        )
