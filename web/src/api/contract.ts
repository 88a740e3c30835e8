// Written from src/kafscale/console/contract by `make generate`; changes belong there.

export interface Acl {
  principal: string;
  host: string;
  operation: string;
  permission: string;
  resourceType: string;
  resourceName: string;
  patternType: string;
}

export interface Acls {
  /** Whether the brokers ask for permission at all. */
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
  /** None named: all that brokers know. */
  mechanisms?: string[];
}

export interface NewPassword {
  password: string;
}

export interface Quota {
  /** Such as `user` or `client-id` to a name; null stands for the default of all others. */
  entity: Record<string, string | null>;
  values: Record<string, number>;
}

export interface Quotas {
  items: Quota[];
  problem: string | null;
}

export interface SetQuota {
  entity: Record<string, string | null>;
  /** Null takes one back. */
  values: Record<string, number | null>;
}

/** What forms offer. */
export interface AccessWords {
  /** By type of resource. */
  operations: Record<string, string[]>;
  patternTypes: string[];
  mechanisms: string[];
  quotaKeys: string[];
}

/** One value of something that is watched over time. */
export interface Point {
  atMs: number;
  value: number;
}

/** A line of a chart. */
export interface Series {
  name: string;
  points: Point[];
}

/** Why something was not done: what every answer that is not a success carries. */
export interface Problem {
  /** A word for programs, such as `not-found`. */
  error: string;
  /** A sentence for people, which says what to do next. */
  message: string;
}

export type HealthState = "healthy" | "degraded" | "down" | "unknown";

/** A broker that is `gone` was there lately and is not any more, without having been drained. */
export type BrokerState = "ready" | "not ready" | "draining" | "unreachable" | "gone";

/** One thing that is not as it should be. */
export interface Reason {
  severity: "warning" | "critical";
  /** Such as `broker 2`, `S3`, `etcd` or `topic orders`. */
  subject: string;
  sentence: string;
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

/** A partition that a broker serves. */
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
  /** At most 1,000 of them, by topic and number. */
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

/** Where the records are, and how that does. */
export interface Store {
  /** Such as `s3://bucket/namespace`, or a directory. */
  place: string;
  /** `healthy`, `degraded` or `unavailable`: the worst that a broker sees. */
  state: string | null;
  errorRate: number | null;
  /** Of the last minutes, by operation. */
  p99Seconds: Record<string, number>;
  operationsPerSecond: number | null;
}

/** Where the metadata are, and how that does. */
export interface Metadata {
  kind: "etcd" | "embedded";
  state: "healthy" | "degraded" | "unavailable" | "unknown";
  memberCount: number;
  readyCount: number;
  databaseBytes: number | null;
  problem: string | null;
}

/** What the object store costs a day at list prices, in US dollars, if it goes on like this. */
export interface Cost {
  storagePerDay: number;
  requestsPerDay: number | null;
  totalPerDay: number | null;
  currency: string;
  /** A sentence that says what was measured, and at which prices. */
  basis: string;
}

export interface GroupLag {
  group: string;
  topic: string;
  lag: number;
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
  /** `lag`: over all groups, in records. */
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

export interface PartitionName {
  topic: string;
  partition: number;
}

export interface Drained {
  broker: number;
  drained: PartitionName[];
  pending: PartitionName[];
}

/** What is to become segments: everything of a broker, or of a topic, or some partitions. */
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
  /** What of its database is in use; the rest is given back by a defragmentation. */
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
  /** False on the embedded default, which keeps its metadata in a file. */
  isConfigured: boolean;
  members: EtcdMember[];
  /** The newest first. */
  snapshots: Snapshot[];
  /** The bucket and the prefix of the snapshots. */
  snapshotsAt: string | null;
  problem: string | null;
}

export interface TakeSnapshot {
  /** Then keep only so many, the newest; 0 keeps all. */
  retain?: number;
}

export interface Group {
  group: string;
  type: string;
  state: string;
  protocolType: string;
  memberCount: number | null;
  topics: string[];
  /** Over all partitions that it has committed something of. */
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
  /** One line a topic, as far back as the console remembers. */
  lagHistory: Series[];
}

export interface ResetTo {
  kind: "earliest" | "latest" | "offset" | "shift" | "time" | "current";
  /** The offset, how many to shift by, or milliseconds since 1970. */
  number?: number;
}

export interface Reset {
  to: ResetTo;
  /** Topics with some of their partitions, none meaning all; null: all that it committed. */
  topics?: Record<string, number[]> | null;
  execute?: boolean;
}

export interface ResetRow {
  topic: string;
  partition: number;
  before: number | null;
  after: number;
  startOffset: number;
  endOffset: number;
  note: string | null;
}

export interface ResetPlan {
  executed: boolean;
  rows: ResetRow[];
}

export interface DeleteGroup {
  confirm: string;
}

export type Format = "auto" | "text" | "json" | "hex" | "base64" | "avro" | "protobuf";

export type SchemaKind = "avro" | "protobuf";

/** How bytes are read: a text, or the framing of a schema registry where there is one. */
export interface Schema {
  kind: SchemaKind;
  /** An Avro schema in JSON, or a .proto file; empty: ask the registry that the settings name. */
  text?: string;
  /** Which message of a .proto file. */
  message?: string;
}

/** How keys, or values, are shown. */
export interface Reading {
  format?: Format;
  schema?: Schema | null;
}

/** Where to begin: `newest` ends at the end and goes back; all others go on from there. */
export interface Start {
  kind?: "newest" | "earliest" | "offset" | "time";
  offset?: number;
  timeMs?: number;
}

/** What is wanted of what is read; all that are given have to hold. */
export interface Filter {
  /** Exactly this key, as text. */
  key?: string;
  /** Contained in the key, the value or a header, as shown; case does not matter. */
  text?: string;
  /** A field of a value that is JSON, such as `customer.address.city`. */
  jsonPath?: string;
  /** What that field is to be; empty: that it is there. */
  jsonEquals?: string;
  /** A header with this name. */
  header?: string;
}

export interface Browse {
  /** None named: all. */
  partitions?: number[];
  start?: Start;
  /** How many to show, at most 500. */
  limit?: number;
  /** By partition, where to go on: the `next` of the answer before. */
  cursor?: Record<string, number>;
  filter?: Filter;
  key?: Reading;
  value?: Reading;
}

/** Bytes made readable. */
export interface Payload {
  format: "text" | "json" | "hex" | "base64" | "avro" | "protobuf";
  text: string;
  sizeBytes: number;
  isTruncated: boolean;
  schemaId: number | null;
  /** Why it could not be read as was asked. */
  problem: string | null;
}

export interface Header {
  key: string;
  value: Payload | null;
}

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

export interface Browsed {
  messages: Message[];
  scannedRecords: number;
  scannedBytes: number;
  /** Whether everything that was asked for has been looked at. */
  isComplete: boolean;
  /** The cursor to go on with. */
  next: Record<string, number>;
  problems: string[];
}

export interface NewHeader {
  key: string;
  value?: string | null;
}

export interface NewPayload {
  text: string;
  format?: "text" | "json" | "hex" | "base64" | "avro" | "protobuf";
  schema?: Schema | null;
}

/** A record to write; no value is a tombstone. */
export interface Produce {
  partition?: number | null;
  key?: NewPayload | null;
  value?: NewPayload | null;
  headers?: NewHeader[];
  timestampMs?: number | null;
}

export interface Produced {
  partition: number;
  offset: number;
  timestampMs: number;
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
  /** How old the newest record is that it has handled. */
  freshnessMs: number | null;
  /** The newest first, at most 50. */
  runs: Run[];
}

export interface TopicCost {
  topic: string;
  storedBytes: number;
  recordCount: number | null;
  costPerDay: number;
}

export interface CostReport {
  madeAtMs: number;
  totalPerDay: number;
  currency: string;
  topics: TopicCost[];
}

export interface Pipeline {
  jobs: Job[];
  cost: CostReport | null;
  problem: string | null;
}

/** What a page has to know before anything else. */
export interface Session {
  /** Whether a user name and a password are set: without both, nobody gets in. */
  isConfigured: boolean;
  username: string | null;
  /** Goes along, as the header `X-CSRF-Token`, with every request that changes something. */
  csrfToken: string | null;
  expiresAtMs: number | null;
  version: string;
}

export interface Login {
  username: string;
  password: string;
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

export interface Topic {
  name: string;
  topicId: string;
  internal: boolean;
  partitionCount: number;
  leaderlessCount: number;
  recordCount: number | null;
  sizeBytes: number | null;
  produceBytesPerSecond: number | null;
  fetchBytesPerSecond: number | null;
}

export interface TopicPage {
  asOfMs: number;
  total: number;
  page: number;
  size: number;
  items: Topic[];
}

export interface Partition {
  partition: number;
  leader: number | null;
  leaderEpoch: number;
  state: string;
  movingTo: number | null;
  startOffset: number | null;
  /** Below it everything is in segments; from there to the high watermark it is in the WAL. */
  rolledOffset: number | null;
  highWatermark: number | null;
  endOffset: number | null;
  recordCount: number | null;
  sizeBytes: number | null;
}

export interface TopicDetail {
  topic: Topic;
  partitions: Partition[];
  throughput: Series[];
}

export interface Config {
  name: string;
  value: string | null;
  default: string | null;
  /** Whether it was set for this topic, rather than being the default. */
  isSet: boolean;
  readOnly: boolean;
  sensitive: boolean;
  type: string;
  documentation: string | null;
}

export interface Segment {
  baseOffset: number;
  /** Unknown for the last one until its footer was read. */
  lastOffset: number | null;
  sizeBytes: number;
  createdAtMs: number;
  key: string;
  hasIndex: boolean;
}

/** What of a partition is in WAL objects only. */
export interface WalTail {
  fromOffset: number;
  toOffset: number;
  recordCount: number;
  objectCount: number | null;
  sizeBytes: number | null;
}

export interface SegmentPage {
  partition: number;
  total: number;
  sizeBytes: number;
  page: number;
  size: number;
  /** The newest first. */
  items: Segment[];
  wal: WalTail | null;
}

export interface SegmentQuery {
  partition?: number;
  page?: number;
  size?: number;
}

export interface TopicConsumer {
  group: string;
  state: string;
  memberCount: number;
  lag: number | null;
  lagByPartition: Record<string, number | null>;
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
  /** The name of the topic once more, as a person has typed it. */
  confirm: string;
}
