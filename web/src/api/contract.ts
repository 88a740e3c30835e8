// Generated from src/kafscale/console/schema by `make generate`. Do not edit.

/** An ACL with Kafka's names of its enums. */
export interface Acl {
  resourceType: string;
  resourceName: string;
  patternType: string;
  principal: string;
  host: string;
  operation: string;
  permission: string;
}

export interface Acls {
  /** True if brokers enforce ACLs. */
  isEnabled: boolean;
  items: Acl[];
  problem: string | null;
}

export interface NewAcl {
  principal: string;
  operation: string;
  resourceType: string;
  resourceName: string;
  host?: string;
  permission?: string;
  patternType?: string;
}

export interface User {
  name: string;
  mechanisms: string[];
}

export interface Users {
  items: User[];
  problem: string | null;
}

export interface NewUser {
  name: string;
  password: string;
  /** Empty: all that brokers support. */
  mechanisms?: string[];
}

export interface NewPassword {
  password: string;
}

export interface Quota {
  /** Types such as `user` or `client-id`, each with a name; null is the default entity. */
  entity: Record<string, string | null>;
  values: Record<string, number>;
}

export interface Quotas {
  items: Quota[];
  problem: string | null;
}

export interface SetQuota {
  entity: Record<string, string | null>;
  /** Null removes a limit. */
  values: Record<string, number | null>;
}

/** The options of forms. */
export interface AccessOptions {
  /** By resource type. */
  operations: Record<string, string[]>;
  patternTypes: string[];
  mechanisms: string[];
  quotaKeys: string[];
}

/** What a page needs to know first. */
export interface Session {
  /** True if a user name and a password are set; without them, no login is possible. */
  isConfigured: boolean;
  username: string | null;
  /** Sent as the header `X-CSRF-Token` with every request that changes something. */
  csrfToken: string | null;
  expiresAtMs: number | null;
  version: string;
}

export interface Login {
  username: string;
  password: string;
}

/** A value at a time. */
export interface Point {
  atMs: number;
  value: number;
}

/** A time series of a chart. */
export interface Series {
  name: string;
  points: Point[];
}

/** The body of every response that is not a success. */
export interface Problem {
  /** An error code for programs, such as `not-found`. */
  error: string;
  /** A sentence for people that says what to do next. */
  message: string;
}

export type HealthState = "healthy" | "degraded" | "down" | "unknown";

/** A broker that is `gone` was live recently, and left without being drained. */
export type BrokerState = "ready" | "not ready" | "draining" | "unreachable" | "gone";

/** The cost of the object store per day at list prices, in US dollars, at the current rate. */
export interface Cost {
  storagePerDay: number;
  /** null until the request rate is known. */
  requestsPerDay: number | null;
  totalPerDay: number | null;
  currency: string;
  /** A sentence that says what was measured, and at which prices. */
  basis: string;
}

/** The cost of all topics. */
export interface CostReport {
  createdAtMs: number;
  totalPerDay: number;
  currency: string;
  /** The most expensive first. */
  topics: TopicCost[];
}

export interface Drained {
  broker: number;
  drained: PartitionName[];
  /** Not transferred before the deadline. */
  pending: PartitionName[];
}

/** The lag of a group in one topic, in records. */
export interface GroupLag {
  group: string;
  topic: string;
  lag: number;
}

/** The metadata store and its health. */
export interface Metadata {
  kind: "etcd" | "embedded";
  state: "healthy" | "degraded" | "unavailable" | "unknown";
  memberCount: number;
  readyCount: number;
  databaseBytes: number | null;
  problem: string | null;
}

export interface PartitionName {
  topic: string;
  partition: number;
}

/** One problem. */
export interface Reason {
  severity: "warning" | "critical";
  /** Such as `broker 2`, `S3`, `etcd` or `topic orders`. */
  subject: string;
  sentence: string;
}

/** The cost of a topic in a cost report. */
export interface TopicCost {
  topic: string;
  storedBytes: number;
  recordCount: number | null;
  costPerDay: number;
}

export interface Health {
  state: HealthState;
  reasons: Reason[];
}

export interface Broker {
  id: number;
  address: string | null;
  control: string | null;
  rack: string | null;
  version: string;
  epoch: number;
  isController: boolean;
  state: BrokerState;
  problems: Record<string, string>;
  storeHealth: string | null;
  uptimeMs: number | null;
  partitionCount: number;
  shardCount: number;
  movingCount: number;
  connections: number | null;
  produceBytesPerSecond: number | null;
  fetchBytesPerSecond: number | null;
  seenAtMs: number;
}

/** A partition that a broker owns. */
export interface BrokerPartition {
  topic: string;
  partition: number;
  state: string;
  movingTo: number | null;
  leaderEpoch: number;
  startOffset: number;
  rolledOffset: number;
  highWatermark: number;
  endOffset: number;
  sizeBytes: number;
}

export interface BrokerDetail {
  broker: Broker;
  /** At most 1,000, by topic and partition. */
  partitions: BrokerPartition[];
  partitionTotal: number;
  throughput: Series[];
}

export interface Totals {
  topicCount: number;
  partitionCount: number;
  leaderlessCount: number;
  groupCount: number;
  connections: number | null;
  storedBytes: number;
  consumerLag: number;
  produceBytesPerSecond: number | null;
  fetchBytesPerSecond: number | null;
  produceRequestsPerSecond: number | null;
  fetchRequestsPerSecond: number | null;
}

/** The object store and its health. */
export interface Store {
  /** Such as `s3://bucket/namespace`, or a directory. */
  place: string;
  /** `healthy`, `degraded` or `unavailable`: the worst that a broker reports. */
  state: string | null;
  errorRate: number | null;
  /** In the last minutes, by operation. */
  p99Seconds: Record<string, number>;
  operationsPerSecond: number | null;
}

export interface Overview {
  clusterId: string;
  controller: number | null;
  asOfMs: number;
  health: Health;
  brokers: Broker[];
  totals: Totals;
  /** `produce` and `fetch`, in bytes per second. */
  throughput: Series[];
  /** `lag`: the sum over all groups, in records. */
  lag: Series[];
  /** The largest, at most 10. */
  topLags: GroupLag[];
  store: Store;
  metadata: Metadata;
  cost: Cost;
}

export interface Drain {
  reason?: string;
  deadlineSeconds?: number;
}

/** What to write as segments: a whole topic, or some of its partitions. */
export interface Flush {
  topic?: string | null;
  partitions?: number[];
}

export interface Flushed {
  partitions: PartitionName[];
}

export interface Move {
  topic: string;
  partition: number;
  source: number;
  target: number;
  done: boolean;
}

export interface Rebalanced {
  moves: Move[];
}

export interface EtcdMember {
  name: string;
  endpoint: string;
  role: string | null;
  version: string | null;
  databaseBytes: number | null;
  /** The used part of the database; defragmentation frees the rest. */
  usedBytes: number | null;
  revision: number | null;
  alarms: string[];
  problem: string | null;
}

export interface Snapshot {
  key: string;
  takenAt: string;
  ageSeconds: number;
  sizeBytes: number;
  revision: number;
  etcdVersion: string | null;
  verified: string;
  problem: string | null;
}

export interface EtcdState {
  /** False for the embedded store, which keeps its metadata in a file. */
  isConfigured: boolean;
  members: EtcdMember[];
  /** Newest first. */
  snapshots: Snapshot[];
  /** The bucket and the prefix of the snapshots. */
  snapshotsAt: string | null;
  problem: string | null;
}

export interface TakeSnapshot {
  /** How many snapshots to keep, the newest; 0 keeps all. */
  retain?: number;
}

export interface Run {
  job: string;
  topics: string[];
  startedAtMs: number;
  endedAtMs: number | null;
  outcome: "running" | "succeeded" | "failed";
  error: string | null;
  recordsIn: number | null;
  recordsOut: number | null;
  sizeBytes: number | null;
  newestTimestampMs: number | null;
  details: Record<string, string | number | null>;
}

export interface Job {
  job: string;
  last: Run;
  successRate: number;
  /** The age of the newest record that the job has processed. */
  freshnessMs: number | null;
  /** Newest first, at most 50. */
  runs: Run[];
}

export interface Pipeline {
  jobs: Job[];
  cost: CostReport | null;
  problem: string | null;
}

/** The planned reset of one partition. */
export interface ResetRow {
  topic: string;
  partition: number;
  before: number | null;
  after: number;
  startOffset: number;
  endOffset: number;
  note: string | null;
}

/** A group with the lag of its members. */
export interface Group {
  group: string;
  type: string;
  state: string;
  protocolType: string;
  /** null if it was not requested or the broker did not return it. */
  memberCount: number | null;
  topics: string[];
  /** Over all partitions with a committed offset. */
  lag: number | null;
}

export interface GroupQuery {
  search?: string;
  state?: string;
  page?: number;
  size?: number;
}

export interface GroupPage {
  asOfMs: number;
  total: number;
  page: number;
  size: number;
  items: Group[];
}

export interface Member {
  memberId: string;
  instanceId: string | null;
  clientId: string;
  host: string;
  topics: string[];
  assignment: Record<string, number[]>;
}

export interface GroupOffset {
  topic: string;
  partition: number;
  committedOffset: number | null;
  endOffset: number | null;
  lag: number | null;
  metadata: string | null;
  memberId: string | null;
  clientId: string | null;
  host: string | null;
}

export interface GroupDetail {
  group: string;
  type: string;
  state: string;
  protocolType: string;
  assignor: string;
  epoch: number | null;
  lag: number | null;
  members: Member[];
  offsets: GroupOffset[];
  /** One series per topic, as far back as the console remembers. */
  lagHistory: Series[];
}

export interface ResetTo {
  kind: "earliest" | "latest" | "offset" | "shift" | "time" | "current";
  /** The offset, the shift in records, or milliseconds since 1970. */
  number?: number;
}

export interface Reset {
  to: ResetTo;
  /** Topics with their partitions, none meaning all; null: all that the group has committed. */
  topics?: Record<string, number[]> | null;
  execute?: boolean;
}

export interface ResetPlan {
  executed: boolean;
  rows: ResetRow[];
}

export interface DeleteGroup {
  confirm: string;
}

export type Format = "auto" | "text" | "json" | "hex" | "base64" | "avro" | "protobuf";

export type Isolation = "read_uncommitted" | "read_committed";

export type SchemaKind = "avro" | "protobuf";

/** The schema of payloads: inline, or from the schema registry. */
export interface Schema {
  kind: SchemaKind;
  /** An Avro schema in JSON, or a .proto file; empty: use the schema registry of the settings. */
  text?: string;
  /** The message of a .proto file. */
  message?: string;
}

/** How keys or values are shown. */
export interface Reading {
  format?: Format;
  schema?: Schema | null;
}

/** Conditions on records; all that are given must hold. */
export interface Filter {
  /** Exactly this key, as text. */
  key?: string;
  /** Contained in the key, the value or a header, as shown; case is ignored. */
  text?: string;
  /** A field of a JSON value, such as `customer.address.city`. */
  jsonPath?: string;
  /** The value of that field; empty: the field exists. */
  jsonEquals?: string;
  /** A header with this name. */
  header?: string;
}

/** A payload as text. */
export interface Payload {
  format: "text" | "json" | "hex" | "base64" | "avro" | "protobuf";
  text: string;
  sizeBytes: number;
  isTruncated: boolean;
  schemaId: number | null;
  /** Why it could not be decoded as requested. */
  problem: string | null;
}

export interface Header {
  key: string;
  value: Payload | null;
}

/** A record as text. */
export interface Message {
  partition: number;
  offset: number;
  timestampMs: number;
  timestampType: "create" | "append" | "none";
  key: Payload | null;
  value: Payload | null;
  headers: Header[];
  sizeBytes: number;
}

/** The records, the cost of the scan, and where to continue. */
export interface Browsed {
  messages: Message[];
  scannedRecords: number;
  scannedBytes: number;
  /** True if all requested records were scanned. */
  isComplete: boolean;
  /** The cursor of the next page. */
  next: Record<string, number>;
  problems: string[];
}

/** A key or a value as entered. */
export interface NewPayload {
  text: string;
  format?: "text" | "json" | "hex" | "base64" | "avro" | "protobuf";
  schema?: Schema | null;
}

export interface Produced {
  partition: number;
  offset: number;
  timestampMs: number;
}

/** Where to begin: `newest` reads backwards from the end; all others read forwards. */
export interface Start {
  kind?: "newest" | "earliest" | "offset" | "time";
  offset?: number;
  timeMs?: number;
}

export interface Browse {
  /** Empty: all. */
  partitions?: number[];
  start?: Start;
  /** How many records to return, at most 500. */
  limit?: number;
  /** By partition, where to continue: the `next` of the previous response. */
  cursor?: Record<string, number>;
  /** By default, records of open and of aborted transactions are shown, too. */
  isolation?: Isolation;
  filter?: Filter;
  key?: Reading;
  value?: Reading;
}

export interface NewHeader {
  key: string;
  value?: string | null;
}

/** A record to write; without a value it is a tombstone. */
export interface Produce {
  partition?: number | null;
  key?: NewPayload | null;
  value?: NewPayload | null;
  headers?: NewHeader[];
  timestampMs?: number | null;
}

export type Order = "asc" | "desc";

export type TopicSort = "name" | "partitions" | "records" | "size" | "produce" | "fetch";

export interface TopicQuery {
  search?: string;
  internal?: boolean;
  sort?: TopicSort;
  order?: Order;
  page?: number;
  size?: number;
}

export interface Config {
  name: string;
  value: string | null;
  default: string | null;
  /** True if it is set for this topic. */
  isSet: boolean;
  readOnly: boolean;
  sensitive: boolean;
  type: string;
  documentation: string | null;
}

/** A partition; fields that only its owner knows are null if that did not respond. */
export interface Partition {
  partition: number;
  leader: number | null;
  leaderEpoch: number;
  state: string;
  movingTo: number | null;
  startOffset: number | null;
  /** Records below it are in segments; from here to the high watermark they are in the WAL. */
  rolledOffset: number | null;
  highWatermark: number | null;
  endOffset: number | null;
  recordCount: number | null;
  sizeBytes: number | null;
}

export interface Segment {
  baseOffset: number;
  /** Null for the newest segment if its footer could not be read. */
  lastOffset: number | null;
  sizeBytes: number;
  createdAtMs: number;
  key: string;
  hasIndex: boolean;
}

/** A group that reads a topic. */
export interface TopicConsumer {
  group: string;
  state: string;
  memberCount: number;
  lag: number | null;
  lagByPartition: Record<string, number | null>;
}

/** The part of a partition that is only in WAL objects. */
export interface WalTail {
  fromOffset: number;
  toOffset: number;
  recordCount: number;
  /** null if the WAL objects were not read. */
  objectCount: number | null;
  sizeBytes: number | null;
}

/** A topic at one time, with its rates. */
export interface Topic {
  name: string;
  topicId: string;
  internal: boolean;
  partitionCount: number;
  leaderlessCount: number;
  /** null unless all partitions are served. */
  recordCount: number | null;
  sizeBytes: number | null;
  produceBytesPerSecond: number | null;
  fetchBytesPerSecond: number | null;
  /** The share of bytes that is not compacted yet, in the dirtiest partition of a compacted topic; null if it is unknown, or if the topic is not compacted. */
  dirtyRatio: number | null;
}

export interface TopicPage {
  asOfMs: number;
  total: number;
  page: number;
  size: number;
  items: Topic[];
}

export interface TopicDetail {
  topic: Topic;
  partitions: Partition[];
  throughput: Series[];
}

/** A page of the segments of a partition, newest first. */
export interface SegmentPage {
  partition: number;
  total: number;
  sizeBytes: number;
  items: Segment[];
  page: number;
  size: number;
  wal: WalTail | null;
}

export interface SegmentQuery {
  partition?: number;
  page?: number;
  size?: number;
}

export interface CreateTopic {
  name: string;
  partitionCount?: number | null;
  configs?: Record<string, string>;
}

export interface AlterConfigs {
  set?: Record<string, string>;
  delete?: string[];
}

export interface Grow {
  partitionCount: number;
}

export interface DeleteTopic {
  /** The name of the topic, entered again. */
  confirm: string;
}

export interface TopicPartitions {
  topic: string;
  partitions: number[];
}

/** A transaction that no coordinator will end, in one partition. */
export interface HangingTransaction {
  topic: string;
  partition: number;
  startOffset: number;
  producerId: number;
  producerEpoch: number;
  /** null if no transactional id has this producer now. */
  transactionalId: string | null;
  lastWrittenMs: number | null;
}

/** A producer that has written to a partition. */
export interface PartitionProducer {
  topic: string;
  partition: number;
  producerId: number;
  producerEpoch: number;
  lastSequence: number | null;
  lastTimestampMs: number | null;
  /** Of its last marker in the partition. */
  coordinatorEpoch: number | null;
  /** Of its open transaction. */
  transactionStartOffset: number | null;
}

/** A transactional id, and its open or last transaction. */
export interface Transaction {
  transactionalId: string;
  state: string;
  /** The id of the broker that coordinates it. */
  coordinator: number;
  producerId: number;
  producerEpoch: number;
  timeoutMs: number;
  /** null if no transaction is open. */
  startedMs: number | null;
  /** The partitions of the open transaction. */
  topics: TopicPartitions[];
}

export interface TransactionQuery {
  search?: string;
  state?: string;
  page?: number;
  size?: number;
}

export interface TransactionPage {
  total: number;
  page: number;
  size: number;
  items: Transaction[];
}

export interface AbortTransaction {
  /** The transactional id. */
  confirm: string;
}

export interface AbortHanging {
  topic: string;
  partition: number;
  startOffset: number;
}
