"""One test of many values, where `pytest.mark.parametrize` would make thousands of tests.

    @for_each(SETTINGS)
    def test_every_setting_has_a_description(setting): ...

The first argument is the value; the others are fixtures. The test fails with all values for which
an assertion failed.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Test = Callable[..., None]


def for_each(values: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Test], Test]:
    """Make a test of one value a test of all `values`; failures contain the `name` of a value."""
    all_values = list(values)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def test_all(**fixtures: Any) -> None:
            check_each(all_values, lambda value: test(value, **fixtures), name)

        signature = inspect.signature(test)
        fixtures = list(signature.parameters.values())[1:]
        test_all.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return test_all

    return decorate


def check_each(
    values: Sequence[Any], check: Callable[[Any], None], name: Callable[[Any], str] = str
) -> None:
    """Call `check` with each value, and raise all its `AssertionError`s together.

    >>> check_each([1, 2, 3], lambda number: None)
    >>> def check(number): assert number == 2
    >>> check_each([1, 2, 3], check)
    Traceback (most recent call last):
    ExceptionGroup: 2 of 3 values fail (2 sub-exceptions)
    >>> check_each([], check)
    Traceback (most recent call last):
    ValueError: there are no values
    """
    if not values:
        raise ValueError("there are no values")
    failures = []
    for value in values:
        try:
            check(value)
        except AssertionError as error:
            error.add_note(name(value))
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(values)} values fail", failures)
