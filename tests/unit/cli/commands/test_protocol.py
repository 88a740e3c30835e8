"""`kafscale protocol`: the table, the fields of a message, the compiled codec."""

import json

import pytest

from kafscale.protocol.apis import APIS


def test_list_shows_every_api_with_its_versions(kafscale):
    result = kafscale("protocol", "list")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[str(api.key), api.name] for api in APIS]
    assert rows[0][2:6] == ["0", "to", "13", "9"]


def test_list_as_json(kafscale):
    listed = json.loads(kafscale("protocol", "list", "-o", "json").stdout)
    assert len(listed) == len(APIS)
    assert listed[0] == {
        "key": 0,
        "name": "Produce",
        "versionMin": 0,
        "versionMax": 13,
        "flexibleSince": 9,
    }
    assert [row["flexibleSince"] for row in listed if row["name"] == "SaslHandshake"] == [None]


def test_show_prints_the_fields_of_both_messages(kafscale):
    result = kafscale("protocol", "show", "produce", "9")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["ProduceRequest", "v9"] in lines
    assert ["ProduceResponse", "v9"] in lines
    assert ["transactional_id", "string", "nullable", "null"] in lines
    assert ["topics", "[]TopicToProduce", "[]"] in lines
    assert ["records", "records", "nullable", "null"] in lines
    assert "current_leader" not in result.stdout
    assert "tag 0" in kafscale("protocol", "show", "produce", "10").stdout


@pytest.mark.parametrize(
    "name", ["list-offsets", "ListOffsets", "list_offsets", "LISTOFFSETS", "2"]
)
def test_api_is_found_by_name_or_key(kafscale, name):
    shown = json.loads(kafscale("protocol", "show", name, "-o", "json").stdout)
    assert (shown["name"], shown["version"]) == ("ListOffsets", 11)
    (topics,) = [field for field in shown["ListOffsetsRequest"] if field["name"] == "topics"]
    assert topics["type"] == "[]TopicToList"
    assert [field["name"] for field in topics["fields"]] == ["name", "partitions"]


def test_source_prints_the_compiled_codec(kafscale):
    result = kafscale("protocol", "show", "heartbeat", "4", "--source")
    assert result.exit_code == 0
    assert result.stdout.count("def decode(view, position):") == 2
    assert result.stdout.count("def encode(message):") == 2
    compile(result.stdout, "shown", "exec")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prodcue"], "did you mean Produce?"),
        (["xyzzy"], "`kafscale protocol list` lists all"),
        (["4711"], "`kafscale protocol list` lists all"),
        (["produce", "14"], "Produce v14 is not supported; supported versions: 0 to 13"),
    ],
)
def test_unknown_api_or_version_is_rejected(kafscale, arguments, message):
    result = kafscale("protocol", "show", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
