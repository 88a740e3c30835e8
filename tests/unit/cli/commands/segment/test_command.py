"""`kafscale segment`: list, inspect and verify."""

import json
from pathlib import Path
from shutil import copytree

import pytest

from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.storage.formats import segment, wal_object
from kafscale.storage.formats.object_keys import index_key, segment_key, wal_key

FIXTURES = Path(__file__).parents[4] / "fixtures" / "upstream-1.6"
CREATED_MS = 1_700_000_000_000
SEGMENT = segment_key("default", "orders", 0, 100)
INDEX = index_key("default", "orders", 0, 100)
WAL = wal_key("default", 7, 3, 42)
FENCE = wal_key("default", 7, 3, 43)


def batches() -> list[BatchView]:
    records = [
        Record(100, CREATED_MS, b"key", b"value", (Header("trace", b"on"), Header("none", None))),
        Record(101, CREATED_MS + 1, None, b"\xff\x00"),
        Record(102, CREATED_MS + 2, b"", b"two\nlines"),
    ]
    first = build(records[:2], codec=Codec.GZIP)
    second = build(records[2:], producer_id=9, producer_epoch=1, base_sequence=5, leader_epoch=4)
    return [BatchView(first), BatchView(second)]


def write(key: str, parts) -> None:
    Path(key).parent.mkdir(parents=True, exist_ok=True)
    Path(key).write_bytes(b"".join(parts))


def change(key: str, position: int) -> None:
    data = bytearray(Path(key).read_bytes())
    data[position] ^= 1
    Path(key).write_bytes(data)


@pytest.fixture
def objects(kafscale):
    """A segment with its index, a WAL object and a fence, below the directory `default`."""
    builder = segment.Builder(CREATED_MS, 4096, compression=None, prior_max_timestamp_ms=-1)
    for batch in batches():
        builder.append(batch)
    built = builder.finish({b"PROD": b"state"})
    write(SEGMENT, built.parts)
    write(INDEX, [built.index])
    parts = [
        wal_object.PartitionData(
            bytes(16),
            "orders",
            0,
            each.buffer,
            each.base_offset,
            each.last_offset,
            each.max_timestamp_ms,
        )
        for each in batches()
    ]
    write(WAL, wal_object.encode(wal_object.Header(7, 3, 42, CREATED_MS), parts))
    write(FENCE, wal_object.encode_empty(wal_object.Header(7, 3, 43, CREATED_MS, is_fence=True)))
    return kafscale


def read_json(result) -> object:
    return json.loads(result.stdout)


# --- list -----------------------------------------------------------------------------------------


def test_list_describes_the_content_of_objects(objects):
    result = objects("segment", "list", "default")
    assert result.exit_code == 0
    rows = {line.split()[0]: line for line in result.stdout.splitlines()[2:]}
    assert list(rows) == [WAL, FENCE, INDEX, SEGMENT]
    assert "broker 7, epoch 3, sequence 42: 1 partition " in rows[WAL]
    assert "broker 7, epoch 3, sequence 43: fence" in rows[FENCE]
    assert "1 entry from offset 100" in rows[INDEX]
    assert "offsets 100 to 102, 3 records" in rows[SEGMENT]
    assert "2023-11-14 22:13:20.000" in rows[SEGMENT]


def test_list_as_json(objects):
    (listed,) = read_json(objects("segment", "list", SEGMENT, "-o", "json"))
    assert listed.pop("checksum")
    assert listed == {
        "path": SEGMENT,
        "kind": "segment",
        "sizeBytes": Path(SEGMENT).stat().st_size,
        "baseOffset": 100,
        "lastOffset": 102,
        "recordCount": 3,
        "createdMs": CREATED_MS,
        "flags": 0,
    }


def test_list_shows_damaged_objects_as_such(objects):
    Path(SEGMENT).write_bytes(b"")
    change(INDEX, 20)
    result = objects("segment", "list", "default")
    assert result.exit_code == 0
    assert "damaged: 0 bytes are too few for the header" in result.stdout
    assert "damaged: checksum mismatch" in result.stdout


def test_list_skips_other_and_hidden_files(objects):
    write("default/orders/0/notes.txt", [b"x"])
    write("default/.tmp/0.kfs", [b"x"])
    assert len(read_json(objects("segment", "list", "default", "-o", "json"))) == 4
    assert read_json(objects("segment", "list", "default/.tmp", "-o", "json")) != []


@pytest.mark.parametrize("command", ["list", "inspect", "verify"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.kfs", "no such file or directory"),
        ("notes.txt", "expected one of .kfs, .index, .kfw"),
    ],
)
def test_invalid_path_is_an_error(objects, command, name, message):
    write("default/notes.txt", [b"x"])
    result = objects("segment", command, f"default/{name}")
    assert result.exit_code == 1
    assert message in result.stderr


# --- inspect --------------------------------------------------------------------------------------


def test_inspect_shows_the_batches_of_a_segment(objects):
    result = objects("segment", "inspect", SEGMENT)
    assert result.exit_code == 0
    assert "offsets 100 to 102, 3 records" in result.stdout
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    sizes = [len(batch) for batch in batches()]
    assert (
        f"32 100 to 101 2 {sizes[0]} gzip 2023-11-14 22:13:20.000 2023-11-14 22:13:20.001 - -1"
        in rows
    )
    assert (
        f"{32 + sizes[0]} 102 to 102 1 {sizes[1]} none 2023-11-14 22:13:20.002"
        " 2023-11-14 22:13:20.002 9, epoch 1, sequence 5 4" in rows
    )
    assert "value" not in result.stdout


@pytest.mark.parametrize("key", [SEGMENT, WAL])
def test_inspect_shows_records_on_one_line_each(objects, key):
    result = objects("segment", "inspect", key, "--records")
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "100 2023-11-14 22:13:20.000 key value trace=on, none=null" in rows
    assert "101 2023-11-14 22:13:20.001 null base64:/wA=" in rows
    assert "102 2023-11-14 22:13:20.002 'two\\nlines'" in rows


def test_inspect_as_json(objects):
    content = read_json(objects("segment", "inspect", SEGMENT, "--records", "-o", "json"))
    assert [batch["codec"] for batch in content["batches"]] == ["gzip", "none"]
    first, second = content["batches"][0]["records"]
    assert first["headers"] == [{"key": "trace", "value": "on"}, {"key": "none", "value": None}]
    assert (second["key"], second["value"]) == (None, {"base64": "/wA="})
    content = read_json(objects("segment", "inspect", WAL, "-o", "json"))
    (result,) = content["ranges"]
    assert (result["topic"], result["partition"], result["position"]) == ("orders", 0, 116)
    assert [batch["baseOffset"] for batch in result["batches"]] == [100, 102]
    assert "records" not in result["batches"][0]


def test_inspect_shows_an_index_with_its_sections(objects):
    result = objects("segment", "inspect", INDEX)
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "section PROD, 5 bytes" in rows
    assert "100 32 2023-11-14 22:13:20.002" in rows


def test_inspect_shows_what_can_be_salvaged_of_a_damaged_segment(objects):
    change(SEGMENT, 32 + len(batches()[0]) + 70)
    result = objects("segment", "inspect", SEGMENT)
    assert result.exit_code == 1
    assert "100 to 101" in result.stdout
    assert "102 to 102" not in result.stdout
    assert f"{SEGMENT}: checksum mismatch" in result.stderr
    Path(SEGMENT).write_bytes(Path(SEGMENT).read_bytes()[:-20])
    content = read_json(objects("segment", "inspect", SEGMENT, "-o", "json"))
    assert [batch["baseOffset"] for batch in content["batches"]] == [100]
    assert "end magic is" in content["damage"]


def test_inspect_rejects_a_directory(objects):
    result = objects("segment", "inspect", "default")
    assert result.exit_code == 1
    assert "is a directory" in result.stderr


# --- verify ---------------------------------------------------------------------------------------


def test_verify_accepts_undamaged_objects(objects):
    result = objects("segment", "verify", "default")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "4 objects: no damage found\n",
        "",
    )


def test_verify_accepts_objects_of_upstream(kafscale):
    result = kafscale("segment", "verify", str(FIXTURES), "-o", "json")
    assert result.exit_code == 0
    assert read_json(result) == {"objectCount": 32, "damaged": [], "segmentsWithoutIndex": []}


@pytest.mark.parametrize("key", [SEGMENT, INDEX, WAL, FENCE])
def test_verify_names_each_damaged_object(objects, key):
    change(key, Path(key).stat().st_size // 2)
    result = objects("segment", "verify", "default")
    assert result.exit_code == 1
    assert f"error: {key}: checksum mismatch" in result.stderr
    assert result.stdout == "4 objects: 1 damaged\n"
    verdict = read_json(objects("segment", "verify", "default", "-o", "json"))
    ((path, reason),) = [(each["path"], each["reason"]) for each in verdict["damaged"]]
    assert path == key
    assert reason.startswith("checksum mismatch")


@pytest.mark.parametrize(
    ("key", "other", "message"),
    [
        (
            SEGMENT,
            segment_key("default", "orders", 0, 99),
            "first offset is 100, which differs from its name",
        ),
        (
            INDEX,
            index_key("default", "orders", 0, 99),
            "first offset is 100, which differs from its name",
        ),
        (
            WAL,
            wal_key("default", 7, 3, 41),
            "broker 7, epoch 3, sequence 42, which differs from its name",
        ),
    ],
)
def test_verify_compares_objects_with_their_names(objects, key, other, message):
    Path(key).rename(other)
    result = objects("segment", "verify", other)
    assert result.exit_code == 1
    assert message in result.stderr


def test_verify_compares_an_index_with_its_segment(kafscale, tmp_path):
    copytree(FIXTURES / "production" / "fixture-none", tmp_path / "default" / "orders")
    key = index_key("default", "orders", 0, 150)
    data = Path(key).read_bytes()
    more = data[:6] + b"\0\0\0\2" + data[10:] + (160).to_bytes(8) + (777).to_bytes(4)
    Path(key).write_bytes(more)
    result = kafscale("segment", "verify", "default")
    assert result.exit_code == 1
    assert f"{key}: no batch of the segment at 777 with offset 160" in result.stderr


def test_verify_lists_segments_without_index(objects):
    Path(INDEX).unlink()
    result = objects("segment", "verify", "default")
    assert result.exit_code == 0
    assert f"{SEGMENT}: the index file is missing" in result.stdout


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ((100, 101), "orders/0: its last offset is 102, but 101 in the footer"),
        ((99, 102), "orders/0: the batch at offset 100 should be at 99"),
    ],
)
def test_verify_compares_the_batches_of_a_wal_object_with_its_footer(objects, offsets, message):
    body = b"".join(each.buffer for each in batches())
    data = wal_object.PartitionData(bytes(16), "orders", 0, body, *offsets, CREATED_MS)
    write(WAL, wal_object.encode(wal_object.Header(7, 3, 42, CREATED_MS), [data]))
    result = objects("segment", "verify", WAL)
    assert result.exit_code == 1
    assert message in result.stderr


def test_verify_checks_each_batch_of_an_intact_object(objects):
    broken = bytearray(b"".join(each.buffer for each in batches()))
    broken[70] ^= 1
    data = wal_object.PartitionData(bytes(16), "orders", 0, broken, 100, 102, CREATED_MS)
    write(WAL, wal_object.encode(wal_object.Header(7, 3, 42, CREATED_MS), [data]))
    result = objects("segment", "verify", WAL)
    assert result.exit_code == 1
    assert "the batch at offset 100: batch CRC mismatch" in result.stderr
