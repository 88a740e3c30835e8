"""Errors of the settings file."""

import pytest

from kafscale.config import Config, load
from kafscale.config.file import read_file
from kafscale.errors import ConfigError


@pytest.fixture
def file(tmp_path):
    return tmp_path / "broker.yaml"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("broker: [1", 1, "is not YAML: "),
        ("a: 1\nb: 2: 3", 2, "is not YAML: mapping values are not allowed here"),
        ("broker: {port: 1}\n---\nbroker: {port: 2}\n", 2, "is not YAML: "),
        ("just text", 1, "is a group of settings, not a value; expected keys with values"),
        ("storage: 5", 1, "is a group of settings, not a value; .* such as segmentBytes"),
        ("etcd:\n  tls: true", 2, "is a group of settings, not a value; .* such as enabled"),
        (
            "broker:\n  port: {number: 1}",
            2,
            "contains nested keys or lists; expected a whole number",
        ),
        ("etcd:\n  endpoints: [[a]]", 2, "contains nested keys or lists; expected a list"),
        ("s3:\n  bucket: [a, b]", 2, '"a, b" is a list; expected a bucket'),
        ("broker:\n  port: 1\n  port: 2", 3, "is already set in line 2"),
        ("broker: {port: 1}\nbroker: {host: a}", 2, "is already set in line 1"),
        ("segmentBytes: 5", 1, "did you mean storage.segmentBytes?"),
        ("storage:\n  segment_bytes: 5", 2, "did you mean storage.segmentBytes?"),
        ("quux: 5", 1, "`kafscale config show` lists all settings"),
        ("? [a]\n: b", 1, "unknown setting"),
        ("broker:\n  <<: {port: 1}", 2, "unknown setting broker.<<"),
    ],
)
def test_invalid_file_is_rejected_with_the_line(file, text, line, problem):
    file.write_text(text)
    with pytest.raises(ConfigError, match=problem) as refused:
        load({}, file)
    assert f"{file}:{line}" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"broker: \xff\xfe", b"broker: \x00"])
def test_binary_file_is_rejected(file, content):
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"broker\.yaml: is not "):
        load({}, file)


def test_directory_is_rejected(tmp_path):
    assert read_file(tmp_path).problems == [f"{tmp_path}: cannot be read: Is a directory"]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "broker:\n", "s3: {endpoint: }\nui: ~"])
def test_empty_value_keeps_the_default(file, text):
    file.write_text(text)
    config = load({}, file)
    assert config == Config()
    assert config.origins == {}
