"""Valid object keys and prefixes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import OperatingError
from kafscale.storage.objects.store import KEY_BYTES_MAX, check_key, check_prefix, is_key

PARTS = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True).filter(
    lambda part: part not in {".", ".."}
)


@given(st.lists(PARTS, min_size=1, max_size=5).filter(lambda parts: parts[0][0] != "."))
def test_topic_and_namespace_names_make_valid_keys(parts):
    key = "/".join(parts)
    check_key(key)
    check_prefix(f"{key}/")


@given(st.text(max_size=30))
def test_valid_key_is_a_path_below_the_root(text):
    if is_key(text):
        assert not text.startswith(("/", "."))
        assert not {"", ".", ".."} & {*text.split("/")}
        assert text.isascii()
        assert text.isprintable()


@pytest.mark.parametrize("text", ["a" * (KEY_BYTES_MAX + 1), "a\n", "ä", "a\\b", "a:b", "a/.."])
def test_keys_that_a_store_cannot_hold_are_invalid(text):
    with pytest.raises(OperatingError, match="invalid object key"):
        check_key(text)


@pytest.mark.parametrize("text", ["", "/", "a", "a//", "../"])
def test_prefix_is_a_key_and_a_slash(text):
    with pytest.raises(OperatingError, match="invalid listing prefix"):
        check_prefix(text)
