"""Keys are hashed by SipHash-2-4 with 128 bits, compared with the published test vectors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.codec.decoder_kernel import NULL, Spans
from kafscale.spark.jobs.compact.key_hash import hash_keys, secret_of

SECRET = bytes(range(16))
VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
}
"""The hash of the bytes 0, 1, 2, … by their number."""


def hashes(keys, secret=SECRET):
    source = np.frombuffer(b"".join(key or b"" for key in keys) + b"!", np.uint8)
    source.flags.writeable = False
    bounds = np.cumsum([0, *(len(key or b"") for key in keys)]).astype(np.int32)
    positions = bounds[:-1].astype(np.int64)
    positions[[key is None for key in keys]] = NULL
    first, second = np.full((2, len(keys)), 7, np.int64)
    hash_keys(source, Spans(positions, bounds), len(keys), secret_of(secret), first, second)
    return [
        low.astype("<i8").tobytes() + high.astype("<i8").tobytes()
        for low, high in zip(first, second, strict=True)
    ]


def test_hashes_match_the_published_vectors():
    hashed = hashes([bytes(range(length)) for length in VECTORS])
    assert [each.hex() for each in hashed] == list(VECTORS.values())


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=40))
def test_only_equal_keys_have_equal_hashes(keys):
    hashed = hashes(keys)
    assert len(set(hashed)) == len(set(keys))
    assert dict(zip(keys, hashed, strict=True)) == dict(zip(keys, hashes(keys), strict=True))


def test_hashes_depend_on_the_secret():
    assert hashes([b"key"]) != hashes([b"key"], bytes(16))


def test_hash_of_a_null_key_is_zero():
    assert hashes([None, b"", b"a"])[0] == bytes(16)
    assert bytes(16) not in hashes([b"", b"a"])


def test_spans_outside_the_source_are_ignored():
    source = np.zeros(4, np.uint8)
    source.flags.writeable = False
    first, second = np.full((2, 2), 7, np.int64)
    spans = Spans(np.array([2, -5], np.int64), np.array([0, 3, 4], np.int32))
    hash_keys(source, spans, 9, secret_of(SECRET), first, second)
    assert [*first, *second] == [0, 0, 0, 0]
