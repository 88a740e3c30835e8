"""Runs the examples, which start their own broker."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def example(name: str) -> ModuleType:
        return importlib.import_module(name)

    return example


@pytest.mark.usefixtures("spark")
def test_clickstream_example(load, tmp_path):
    plot = tmp_path / "clicks.svg"
    rows = load("clickstream_to_iceberg").main(["--records", "2000", "--plot", str(plot)])
    assert rows == 3000
    assert "<svg" in plot.read_text()


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_cdc_example(load):
    assert load("cdc_upsert").main(["--records", "1000"]) > 100


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_log_query_example(load, capsys):
    load("log_analytics").main(["--records", "2000"])
    output = capsys.readouterr().out
    assert output.count(" rows, ") == 3
    assert "bank does not respond" in output
