"""The tenures that have begun and are not over: for which groups this broker answers.

The laws: a shard has one tenure at most. A group is answered for while the tenure of its shard
serves, and as long as it is proven that nobody else can have been given the shard meanwhile.
"""

from collections.abc import Callable, Iterator

from kafscale.broker.group_coordinator.shard_session import Phase, Tenure
from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
)
from kafscale.metadata.cluster.group_shards import shard_of


class Tenures:
    """All tenures of this broker, by shard."""

    def __init__(self, proven: Callable[[], bool]) -> None:
        self._proven = proven
        self._by_shard: dict[int, Tenure] = {}

    def __iter__(self) -> Iterator[Tenure]:
        return iter(list(self._by_shard.values()))

    def get(self, shard: int) -> Tenure | None:
        return self._by_shard.get(shard)

    def of(self, group_id: str) -> Tenure | None:
        return self._by_shard.get(shard_of(group_id))

    def add(self, tenure: Tenure) -> None:
        assert tenure.shard not in self._by_shard, tenure.shard
        self._by_shard[tenure.shard] = tenure

    def remove(self, tenure: Tenure) -> None:
        removed = self._by_shard.pop(tenure.shard)
        assert removed is tenure, tenure.shard

    def has(self, group_id: str) -> bool:
        """Whether clients of this group are right here, even if they have to wait."""
        tenure = self.of(group_id)
        return tenure is not None and tenure.phase in {Phase.LOADING, Phase.SERVING}

    def check(self, group_id: str) -> Tenure:
        """The tenure of a group that can be answered for now; raise if there is none."""
        tenure = self.of(group_id)
        if tenure is None or tenure.phase is Phase.LEAVING or not self._proven():
            raise NotCoordinatorError(f"another broker answers for group {group_id!r}")
        if tenure.phase is Phase.LOADING:
            raise CoordinatorLoadingError(f"group {group_id!r} is being loaded")
        return tenure

    def check_all(self) -> None:
        """Raise, retriably, unless everything that is ours can be told of."""
        if not self._proven():
            raise CoordinatorUnavailableError("this broker may have been given up; try again")
        if any(tenure.phase is Phase.LOADING for tenure in self._by_shard.values()):
            raise CoordinatorLoadingError("groups are being loaded")
