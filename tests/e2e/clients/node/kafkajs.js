// KafkaJS: its producer and its admin client with their defaults. It obeys the same commands as the
// clients in Go do; `go/puppet/puppet.go` says what they are.
//
// Its consumer knows groups only. What a consumer does below them, to fetch from a partition's leader
// and to read the answer, is taken from KafkaJS's inner parts.

const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");
const Batch = require("kafkajs/src/consumer/batch");
const Cluster = require("kafkajs/src/cluster");
const createSocketFactory = require("kafkajs/src/network/socketFactory");
const { createLogger } = require("kafkajs/src/loggers");
const LoggerConsole = require("kafkajs/src/loggers/console");

const UNKNOWN_CODE = -1;
const TOPIC_ALREADY_EXISTS = 36;
const EARLIEST = -2;
const LATEST = -1;
const READ_COMMITTED = 1;
const PATIENCE_MS = 20_000;
const PAUSE_MS = 100;
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};
const ACKS = { "0": 0, "1": 1, all: -1 };

class Puppet {
  constructor(address) {
    this.brokers = [address];
    this.kafka = new Kafka({ brokers: this.brokers, logLevel: logLevel.NOTHING });
    this.admin = this.kafka.admin();
    this.producers = new Map();
  }

  async create({ topic, partitions, configs = {} }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const topics = [{ topic, numPartitions: partitions, configEntries }];
    const isNew = await this.admin.createTopics({ topics });
    if (!isNew) throw Object.assign(new Error("it exists"), { code: TOPIC_ALREADY_EXISTS });
  }

  async delete({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] });
  }

  async topics() {
    const { topics } = await this.admin.fetchTopicMetadata();
    return Object.fromEntries(topics.map(({ name, partitions }) => [name, partitions.length]));
  }

  async configs({ topic }) {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
    const { resources } = await this.admin.describeConfigs({ resources: [resource] });
    return Object.fromEntries(
      resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]),
    );
  }

  async alter({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries };
    await this.admin.alterConfigs({ resources: [resource] });
  }

  async produce({ topic, records, sending = {} }) {
    const producer = await this.producer(sending.idempotent ?? false);
    const messages = records.map(({ key, value, headers, timestamp_ms: timestamp }) => ({
      key,
      value,
      headers: grouped(headers ?? []),
      ...(timestamp ? { timestamp: String(timestamp) } : {}),
    }));
    const how = { topic, messages };
    if (sending.codec) how.compression = CODECS[sending.codec];
    if (sending.acks) how.acks = ACKS[sending.acks];
    const [answer] = await producer.send(how);
    // Only the first offset of a batch is told.
    return records.map((_, index) => (answer ? Number(answer.baseOffset) + index : -1));
  }

  async producer(idempotent) {
    if (!this.producers.has(idempotent)) {
      const producer = this.kafka.producer(idempotent ? { idempotent } : {});
      await producer.connect();
      this.producers.set(idempotent, producer);
    }
    return this.producers.get(idempotent);
  }

  async consume({ topic, partition = 0, offset, count }) {
    const cluster = this.cluster();
    const deadline = Date.now() + PATIENCE_MS;
    const found = [];
    while (found.length < count) {
      if (Date.now() > deadline) throw new Error(`only ${found.length} records came`);
      const next = found.length ? found.at(-1).offset + 1 : offset;
      try {
        found.push(...(await fetched(cluster, topic, partition, String(next))));
      } catch (error) {
        if (!error.retriable) throw error;
        await sleep(PAUSE_MS);
      }
    }
    await cluster.disconnect();
    return found;
  }

  cluster() {
    return new Cluster({
      brokers: this.brokers,
      logger: createLogger({ level: logLevel.NOTHING, logCreator: LoggerConsole }),
      socketFactory: createSocketFactory(),
      connectionTimeout: 1000,
      requestTimeout: 30_000,
      allowAutoTopicCreation: true,
      isolationLevel: READ_COMMITTED,
      metadataMaxAge: 300_000,
    });
  }

  async offset({ topic, partition = 0, timestamp_ms: timestamp }) {
    if (timestamp !== LATEST && timestamp !== EARLIEST) {
      const found = await this.admin.fetchTopicOffsetsByTimestamp(topic, timestamp);
      return Number(found.find((each) => each.partition === partition).offset);
    }
    const found = await this.admin.fetchTopicOffsets(topic);
    const { low, high } = found.find((each) => each.partition === partition);
    return Number(timestamp === EARLIEST ? low : high);
  }

  async trim({ topic, partition = 0, offset }) {
    // It knows the leaders only of topics that it has been asked about.
    await this.admin.fetchTopicOffsets(topic);
    const partitions = [{ partition, offset: String(offset) }];
    await this.admin.deleteTopicRecords({ topic, partitions });
  }
}

async function fetched(cluster, topic, partition, fetchOffset) {
  await cluster.connect();
  await cluster.addTargetTopic(topic);
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]));
  const leader = await cluster.findBroker({ nodeId });
  const asked = { topic, partitions: [{ partition, fetchOffset, maxBytes: 1_048_576 }] };
  const { responses } = await leader.fetch({
    isolationLevel: READ_COMMITTED,
    maxWaitTime: 1000,
    topics: [asked],
  });
  const batches = responses.flatMap(({ partitions }) =>
    partitions.map((answer) => new Batch(topic, fetchOffset, answer)),
  );
  return batches.flatMap(({ messages }) => messages.map((each) => received(partition, each)));
}

function received(partition, { offset, timestamp, key, value, headers }) {
  return {
    partition,
    offset: Number(offset),
    timestamp_ms: Number(timestamp),
    key: key?.toString() ?? null,
    value: value?.toString() ?? null,
    headers: Object.entries(headers).flatMap(([name, texts]) =>
      [texts].flat().map((text) => [name, text.toString()]),
    ),
  };
}

// KafkaJS keeps headers by their names: those that repeat are a list.
function grouped(headers) {
  const texts = {};
  for (const [name, text] of headers) (texts[name] ??= []).push(text);
  return texts;
}

function failure(error) {
  const cause = [error, error.cause, error.errors?.[0]].find((each) => each?.code !== undefined);
  return {
    message: String(error),
    code: Number.isInteger(cause?.code) ? cause.code : UNKNOWN_CODE,
    unsupported: error.name === "KafkaJSNotImplemented",
  };
}

async function main() {
  const puppet = new Puppet(process.argv[2]);
  await puppet.admin.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    const answer = await puppet[command.do](command).then(
      (result) => ({ result: result ?? null, error: null }),
      (error) => ({ result: null, error: failure(error) }),
    );
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
}

main();
