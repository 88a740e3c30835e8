"""A function of the user's that changes records on their way, in batches of Arrow.

It gets the columns key, value, timestamp, headers, partition and offset, and returns the same for
as many records as it likes, in the order of their offsets. The law: the offset of a record that it
returns is that of the one it is made of, because that is how a replay knows what it has written.
"""

import importlib
from collections.abc import Callable

import pyarrow as pa
from pyspark import cloudpickle

from kafscale.errors import InvalidRequestError

Function = Callable[[pa.RecordBatch], pa.RecordBatch]


def load(name: str) -> Function:
    """The function that `module:function` names, such that it can be sent to where it runs."""
    module_name, _, function_name = name.partition(":")
    if not (module_name and function_name):
        raise InvalidRequestError(f"{name!r} is not of the form module:function")
    try:
        module = importlib.import_module(module_name)
        function: Function = getattr(module, function_name)
    except (ImportError, AttributeError) as error:
        raise InvalidRequestError(f"there is no function {name}: {error}") from None
    # Tasks run where its file need not be.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return function


def apply(function: Function, records: pa.RecordBatch) -> pa.RecordBatch:
    """What a function makes of records, checked for what it must leave in place."""
    made = function(records)
    if not isinstance(made, pa.RecordBatch):
        raise InvalidRequestError(f"a function returns a RecordBatch, not {type(made).__name__}")
    missing = [
        name for name in ("key", "value", "timestamp", "offset") if name not in made.schema.names
    ]
    if missing:
        raise InvalidRequestError(f"a function has left out the columns {', '.join(missing)}")
    return made
