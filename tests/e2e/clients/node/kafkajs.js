// KafkaJS: its producer, consumer and admin client with the defaults. It executes the same commands
// as the Go clients; `go/driver` defines them. `kafkajs_member.js` is the member of a group.
//
// KafkaJS consumes only in groups, so that `consume` reads as the only member of a new group.

const { randomUUID } = require("node:crypto");
const { readFileSync } = require("node:fs");
const readline = require("node:readline");
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");
const { join } = require("./kafkajs_member");

const UNKNOWN_CODE = -1;
const TOPIC_ALREADY_EXISTS = 36;
const EARLIEST = -2;
const LATEST = -1;
const TIMEOUT_MS = 20_000;
// How long the broker waits for new records. It delays closing the consumer; the default is 5 s.
const MAX_WAIT_MS = 200;
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};
const ACKS = { "0": 0, "1": 1, all: -1 };

// TLS and SASL settings from the environment; none without authentication.
function credentials() {
  const { CLIENT_USER: username, CLIENT_PASSWORD: password, CLIENT_CA_FILE: file } = process.env;
  if (!username) return {};
  return { ssl: { ca: [readFileSync(file)] }, sasl: { mechanism: "scram-sha-512", username, password } };
}

class Driver {
  constructor(address) {
    this.kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, ...credentials() });
    this.admin = this.kafka.admin();
    this.producers = new Map();
  }

  async create({ topic, partitions, configs = {} }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const topics = [{ topic, numPartitions: partitions, configEntries }];
    const isNew = await this.admin.createTopics({ topics });
    if (!isNew) throw Object.assign(new Error("the topic exists"), { code: TOPIC_ALREADY_EXISTS });
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

  async produce({ topic, records, producer: options = {} }) {
    const { idempotent = false, transactional_id: transactionalId } = options;
    const producer = await this.producer(idempotent, transactionalId);
    const messages = records.map(({ key, value, headers, timestamp_ms: timestamp }) => ({
      key,
      value,
      headers: grouped(headers ?? []),
      ...(timestamp ? { timestamp: String(timestamp) } : {}),
    }));
    const request = { topic, messages };
    if (options.codec) request.compression = CODECS[options.codec];
    if (options.acks) request.acks = ACKS[options.acks];
    const sender = transactionalId ? await producer.transaction() : producer;
    const [response] = await sender.send(request);
    if (transactionalId) await (options.abort ? sender.abort() : sender.commit());
    // The response has only the first offset of a batch.
    return records.map((_, index) => (response ? Number(response.baseOffset) + index : -1));
  }

  async producer(idempotent, transactionalId) {
    const name = transactionalId ?? idempotent;
    if (!this.producers.has(name)) {
      let settings = idempotent ? { idempotent } : {};
      // As its documentation demands for transactions.
      if (transactionalId) settings = { transactionalId, idempotent: true, maxInFlightRequests: 1 };
      const producer = this.kafka.producer(settings);
      await producer.connect();
      this.producers.set(name, producer);
    }
    return this.producers.get(name);
  }

  async consume({ topic, partition = 0, offset, count, committed = false }) {
    const records = [];
    let next = offset;
    const consumer = this.kafka.consumer({
      groupId: randomUUID(),
      maxWaitTimeInMs: MAX_WAIT_MS,
      readUncommitted: !committed,
    });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    try {
      await new Promise((resolve, reject) => {
        const tooFew = () => reject(new Error(`timed out after ${records.length} records`));
        const timeout = setTimeout(tooFew, TIMEOUT_MS);
        const eachMessage = async ({ partition: from, message }) => {
          // Records that are read again after a broker restart are skipped.
          if (from !== partition || Number(message.offset) < next) return;
          next = Number(message.offset) + 1;
          if (records.length < count) records.push(received(from, message));
          if (records.length === count) resolve(clearTimeout(timeout));
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
    return records;
  }

  async offset({ topic, partition = 0, timestamp_ms: timestamp }) {
    if (timestamp !== LATEST && timestamp !== EARLIEST) {
      const offsets = await this.admin.fetchTopicOffsetsByTimestamp(topic, timestamp);
      return Number(offsets.find((each) => each.partition === partition).offset);
    }
    const offsets = await this.admin.fetchTopicOffsets(topic);
    const { low, high } = offsets.find((each) => each.partition === partition);
    return Number(timestamp === EARLIEST ? low : high);
  }

  async trim({ topic, partition = 0, offset }) {
    // KafkaJS knows the leaders only of topics that it has requested metadata of.
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

// KafkaJS takes headers as an object; repeated names become a list.
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
  const driver = new Driver(process.argv[2]);
  await driver.admin.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    const response = await driver[command.command](command).then(
      (result) => ({ result: result ?? null, error: null }),
      (error) => ({ result: null, error: failure(error) }),
    );
    process.stdout.write(`${JSON.stringify(response)}\n`);
  }
  process.exit(0);
}

if (process.argv[2] === "member") join(JSON.parse(process.argv[3]));
else main();
