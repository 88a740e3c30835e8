// KafkaJS as a member of a consumer group, with the defaults: round robin, and a commit after each
// batch. It prints one event a line until SIGTERM; `tests/services/member_events.py` defines them.

const { Kafka, logLevel } = require("kafkajs");

const STRATEGY = "roundrobin";
// How long the broker waits for new records. It delays leaving the group; the default is 5 s.
const MAX_WAIT_MS = 200;

async function join(options) {
  if (options.strategy !== STRATEGY) throw new Error(`unsupported strategy: ${options.strategy}`);
  const kafka = new Kafka({ brokers: [options.address], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: options.group,
    sessionTimeout: options.session_timeout_ms,
    heartbeatInterval: options.heartbeat_interval_ms,
    maxWaitTimeInMs: MAX_WAIT_MS,
  });
  reportOwnership(consumer, options.topic);
  reportCommits(consumer);
  await consumer.connect();
  await consumer.subscribe({ topic: options.topic, fromBeginning: true });
  process.on("SIGTERM", async () => {
    await consumer.disconnect();
    emit("ended");
    process.exit(0);
  });
  const eachMessage = async ({ partition, message }) => {
    const first = Number(message.offset);
    emit("read", { partition, first, end: first + 1 });
  };
  await consumer.run({ eachMessage });
}

function reportOwnership(consumer, topic) {
  let owned = [];
  const revoke = () => {
    if (owned.length) emit("revoked", { partitions: owned });
    owned = [];
  };
  consumer.on(consumer.events.REBALANCING, revoke);
  consumer.on(consumer.events.STOP, revoke);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    revoke();
    owned = payload.memberAssignment[topic] ?? [];
    if (owned.length) emit("assigned", { partitions: owned });
  });
}

function reportCommits(consumer) {
  consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => {
    for (const { partition, offset } of payload.topics.flatMap((topic) => topic.partitions)) {
      emit("committed", { partition: Number(partition), offset: Number(offset) });
    }
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => emit("failed", { error: `${payload.error}` }));
}

function emit(event, details = {}) {
  process.stdout.write(`${JSON.stringify({ event, at_ms: Date.now(), ...details })}\n`);
}

module.exports = { join };
