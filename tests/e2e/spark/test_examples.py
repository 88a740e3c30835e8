"""The examples run as they are, on a broker that they start themselves."""

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
def test_clicks_become_a_table_exactly_once_and_a_plot(load, tmp_path):
    plot = tmp_path / "clicks.svg"
    rows = load("clickstream_to_iceberg").main(["--records", "2000", "--plot", str(plot)])
    assert rows == 3000
    assert "<svg" in plot.read_text()


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_table_follows_the_changes_of_a_database(load):
    assert load("cdc_upsert").main(["--records", "1000"]) > 100


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_logs_are_asked_where_they_lie(load, capsys):
    load("log_analytics").main(["--records", "2000"])
    said = capsys.readouterr().out
    assert said.count(" rows, ") == 3
    assert "bank does not answer" in said
