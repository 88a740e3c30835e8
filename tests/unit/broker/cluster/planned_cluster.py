"""A cluster without I/O: brokers, topics, assignments, and plans that are applied to them."""

from collections import Counter

from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.planner import plan
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, BrokerInfo

NOW_MS = 1_750_000_000_000


class PlannedCluster:
    """Brokers and topics that come and go, and assignments that follow the plans."""

    def __init__(self, *broker_ids, moves_max=5, **topics):
        self.topics = {**topics, SHARDS_TOPIC: SHARD_COUNT}
        self.replicas = {}
        self.brokers = {}
        self.assignments = {}
        self.fenced = set()
        self.moves_max = moves_max
        self.epochs = Counter()
        self.revision = 1000
        for broker_id in broker_ids:
            self.join(broker_id)

    def join(self, broker_id, rack=""):
        """A broker starts a session: its first, or one after a crash."""
        self.epochs[broker_id] += 1
        self.brokers[broker_id] = BrokerInfo(
            id=broker_id, epoch=self.epochs[broker_id], host="host", port=9092, rack=rack
        )

    def remove_broker(self, broker_id):
        del self.brokers[broker_id]

    def drain(self, broker_id):
        self.brokers[broker_id] = replace(self.brokers[broker_id], is_draining=True)

    def request(self, topic, **replicas):
        """Request brokers for partitions, as `request("orders", p0=[2, 1])`."""
        requested = {int(name[1:]): tuple(broker_ids) for name, broker_ids in replicas.items()}
        self.replicas[topic] = self.replicas.get(topic, {}) | requested

    def plan(self):
        return plan(
            partitions=self.topics,
            brokers=self.brokers,
            assignments=self.assignments,
            fenced=self.fenced,
            now_ms=NOW_MS,
            moves_max=self.moves_max,
            replicas=self.replicas,
        )

    def apply(self, planned):
        for change in planned.changes:
            after = change.after
            self.write(after)
        for removed in planned.removals:
            del self.assignments[removed.topic, removed.partition]
        self.fenced |= planned.to_fence

    def write(self, assignment):
        self.revision += 1
        topic_partition = (assignment.topic, assignment.partition)
        self.assignments[topic_partition] = replace(assignment, mod_revision=self.revision)

    def transfer_all(self):
        """Execute the transfers that `reassigning_to` requests; return their number."""
        moving = [
            result
            for result in self.assignments.values()
            if result.reassigning_to is not None
            and result.is_owned_by(self.brokers.get(result.broker_id))
        ]
        for result in moving:
            self.transfer_one(result)
        return len(moving)

    def transfer_one(self, assignment):
        target = self.brokers[assignment.reassigning_to]
        self.write(
            replace(
                assignment,
                broker_id=target.id,
                broker_epoch=target.epoch,
                leader_epoch=assignment.leader_epoch + 1,
                fully_rolled=True,
                reassigning_to=None,
            )
        )

    def plan_until_done(self):
        """Plan and apply until nothing is left to do; return all plans and the number of moves."""
        plans, moves = [], 0
        while True:
            planned = self.plan()
            self.apply(planned)
            transferred = self.transfer_all()
            if planned.changes or planned.removals or planned.to_fence:
                plans.append(planned)
            elif not transferred:
                return plans, moves
            moves += transferred
            assert len(plans) < 1000, "plans never end"

    # --- observations ---------------------------------------------------------------------------

    def counts(self, topic=None, *, shards=False):
        """How many units each broker has: of a topic, of all topics, or of the shards."""
        counts = Counter(dict.fromkeys(self.brokers, 0))
        for result in self.assignments.values():
            if (result.topic == SHARDS_TOPIC) == shards and topic in {None, result.topic}:
                counts[result.broker_id] += 1
        return counts

    def moving(self, topic=None):
        """What is requested to move, and the targets."""
        return {
            topic_partition: result.reassigning_to
            for topic_partition, result in self.assignments.items()
            if result.reassigning_to is not None and topic in {None, result.topic}
        }


def imbalance(counts):
    return max(counts.values()) - min(counts.values())
