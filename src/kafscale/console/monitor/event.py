"""What is told of one look, made when it is first asked for and once for all who ask."""

from functools import cached_property

import msgspec

from kafscale.console.monitor import views
from kafscale.console.monitor.state import Remembered
from kafscale.console.schema.cluster import Overview
from kafscale.console.schema.groups import Group
from kafscale.console.schema.topics import Topic


class Told:
    """The pages of one look."""

    def __init__(self, remembered: Remembered, overview: Overview) -> None:
        self.overview = overview
        self._topics = remembered.topic_figures
        self._rates = remembered.rates
        self._groups = remembered.look.groups
        self._lags = remembered.lags

    @cached_property
    def overview_json(self) -> bytes:
        return msgspec.json.encode(self.overview)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {name: views.topic(each, self._rates) for name, each in self._topics.items()}

    @cached_property
    def groups(self) -> dict[str, Group]:
        return {name: views.group(each, self._lags) for name, each in self._groups.items()}
