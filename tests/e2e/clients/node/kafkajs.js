// KafkaJS: its producer, its consumer and its admin client with their defaults. It obeys the same
// commands as the clients in Go do; `go/puppet` says what they are. As a member of a group, it is in
// `kafkajs_member.js`.
//
// Its consumer knows groups only: what is to be read from a single partition is read by the only
// member of a new group.

const { randomUUID } = require("node:crypto");
const { readFileSync } = require("node:fs");
const readline = require("node:readline");
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");
const { join } = require("./kafkajs_member");

const UNKNOWN_CODE = -1;
const TOPIC_ALREADY_EXISTS = 36;
const EARLIEST = -2;
const LATEST = -1;
const PATIENCE_MS = 20_000;
// The consumer lets the broker wait for so long for new records, and is not closed meanwhile: five
// seconds, by default.
const WAIT_MS = 200;
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};
const ACKS = { "0": 0, "1": 1, all: -1 };

// How to log in at a broker that does not take everybody, as the environment says.
function wayIn() {
  const { CLIENT_USER: username, CLIENT_PASSWORD: password, CLIENT_AUTHORITY: file } = process.env;
  if (!username) return {};
  return { ssl: { ca: [readFileSync(file)] }, sasl: { mechanism: "scram-sha-512", username, password } };
}

class Puppet {
  constructor(address) {
    this.kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, ...wayIn() });
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
    const found = [];
    const consumer = this.kafka.consumer({ groupId: randomUUID(), maxWaitTimeInMs: WAIT_MS });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    try {
      await new Promise((resolve, reject) => {
        const tooFew = () => reject(new Error(`only ${found.length} records came`));
        const patience = setTimeout(tooFew, PATIENCE_MS);
        const eachMessage = async ({ partition: from, message }) => {
          // What is read again after the broker was away is known already.
          if (from !== partition || Number(message.offset) !== offset + found.length) return;
          if (found.length < count) found.push(received(from, message));
          if (found.length === count) resolve(clearTimeout(patience));
        };
        consumer.on(consumer.events.CRASH, ({ payload }) => {
          if (!payload.restart) reject(payload.error);
        });
        consumer.run({ eachMessage }).catch(reject);
        consumer.seek({ topic, partition, offset: String(offset) });
      });
    } finally {
      await consumer.disconnect();
    }
    return found;
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

if (process.argv[2] === "member") join(JSON.parse(process.argv[3]));
else main();
