// KafkaJS as a member of a group, with its defaults: it shares partitions in turns, and commits after
// each batch. It tells what happens to it, a line for each event, until it gets the signal to leave;
// `tests/services/member_events.py` says what the events mean.

const { Kafka, logLevel } = require("kafkajs");

const STRATEGY = "roundrobin";
// The broker may wait for so long for new records, and the member does not leave meanwhile: five
// seconds, by default.
const WAIT_MS = 200;

async function join(orders) {
  if (orders.strategy !== STRATEGY) throw new Error(`no such strategy here: ${orders.strategy}`);
  const kafka = new Kafka({ brokers: [orders.address], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: orders.group,
    sessionTimeout: orders.session_timeout_ms,
    heartbeatInterval: orders.heartbeat_interval_ms,
    maxWaitTimeInMs: WAIT_MS,
  });
  tellOwnership(consumer, orders.topic);
  tellCommits(consumer);
  await consumer.connect();
  await consumer.subscribe({ topic: orders.topic, fromBeginning: true });
  process.on("SIGTERM", async () => {
    await consumer.disconnect();
    tell("ended");
    process.exit(0);
  });
  const eachMessage = async ({ partition, message }) => {
    const first = Number(message.offset);
    tell("read", { partition, first, end: first + 1 });
  };
  await consumer.run({ eachMessage });
}

function tellOwnership(consumer, topic) {
  let owned = [];
  const giveUp = () => {
    if (owned.length) tell("revoked", { partitions: owned });
    owned = [];
  };
  consumer.on(consumer.events.REBALANCING, giveUp);
  consumer.on(consumer.events.STOP, giveUp);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    giveUp();
    owned = payload.memberAssignment[topic] ?? [];
    if (owned.length) tell("assigned", { partitions: owned });
  });
}

function tellCommits(consumer) {
  consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => {
    for (const { partition, offset } of payload.topics.flatMap((topic) => topic.partitions)) {
      tell("committed", { partition: Number(partition), offset: Number(offset) });
    }
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => tell("failed", { error: `${payload.error}` }));
}

function tell(what, details = {}) {
  process.stdout.write(`${JSON.stringify({ what, at_ms: Date.now(), ...details })}\n`);
}

module.exports = { join };
