import pytest

from kafscale.errors import InvalidTopicError
from kafscale.metadata.topics import names


@pytest.mark.parametrize("name", ["a", "orders", "Orders.v2_final-1", "...", "_", "0", "x" * 249])
def test_valid_names_are_accepted(name):
    names.check(name)
    assert names.is_legal(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "x" * 250, "a/b", "a b", "a\n", "ä", "a\x00", "a:b", "a%", "_wal", "_staging"],
)
def test_invalid_names_are_rejected(name):
    with pytest.raises(InvalidTopicError):
        names.check(name)
    assert not names.is_legal(name)


@pytest.mark.parametrize(
    ("name", "existing"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c"), ("__", "..-"[:2])]
)
def test_names_that_differ_in_dots_and_underscores_collide(name, existing):
    with pytest.raises(InvalidTopicError, match="collides"):
        names.check_collision(name, ["other", existing])


@pytest.mark.parametrize(("name", "existing"), [("a.b", "a.b"), ("ab", "a_b"), ("a.b", "a-b")])
def test_other_names_do_not_collide(name, existing):
    names.check_collision(name, [existing])
