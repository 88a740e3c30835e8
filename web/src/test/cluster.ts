/** Test data: a small cluster. */
import type { Broker, Overview, Topic, TopicPage } from "../api/contract";

export const NOW = Date.now();

export function broker(id: number, changes: Partial<Broker> = {}): Broker {
  return {
    id,
    address: `10.0.0.${id}:9092`,
    control: `10.0.0.${id}:9095`,
    rack: null,
    version: "1.2.3",
    epoch: 4,
    isController: id === 1,
    state: "ready",
    problems: {},
    storeHealth: "healthy",
    uptimeMs: 3_600_000,
    partitionCount: 12 * id,
    shardCount: 4,
    movingCount: 0,
    connections: 7,
    produceBytesPerSecond: 1536,
    fetchBytesPerSecond: 2048 * id,
    seenAtMs: NOW,
    ...changes,
  };
}

export function overview(changes: Partial<Overview> = {}): Overview {
  return {
    clusterId: "c1",
    controller: 1,
    asOfMs: NOW,
    health: { state: "healthy", reasons: [] },
    brokers: [broker(1), broker(2)],
    totals: {
      topicCount: 3,
      partitionCount: 36,
      leaderlessCount: 0,
      groupCount: 2,
      connections: 14,
      storedBytes: 5 * 1024 ** 3,
      consumerLag: 1234,
      produceBytesPerSecond: 3072,
      fetchBytesPerSecond: null,
      produceRequestsPerSecond: 2.5,
      fetchRequestsPerSecond: null,
    },
    throughput: [
      { name: "produce", points: [{ atMs: NOW - 2000, value: 1024 }, { atMs: NOW, value: 3072 }] },
      { name: "fetch", points: [{ atMs: NOW, value: 0 }] },
    ],
    lag: [],
    topLags: [{ group: "billing/eu", topic: "orders", lag: 1200 }],
    store: { place: "s3://bucket/main", state: "healthy", errorRate: 0, p99Seconds: { put: 0.042 }, operationsPerSecond: 9 },
    metadata: { kind: "etcd", state: "degraded", memberCount: 3, readyCount: 2, databaseBytes: 4096, problem: "etcd-2 is unreachable." },
    cost: { storagePerDay: 0.004, requestsPerDay: 1.5, totalPerDay: 1.504, currency: "USD", basis: "At list prices." },
    ...changes,
  };
}

export function topic(name: string, changes: Partial<Topic> = {}): Topic {
  return {
    name,
    topicId: `id of ${name}`,
    internal: false,
    partitionCount: 3,
    leaderlessCount: 0,
    recordCount: 100,
    sizeBytes: 2048,
    dirtyRatio: null,
    produceBytesPerSecond: 0,
    fetchBytesPerSecond: null,
    ...changes,
  };
}

export function topicPage(items: Topic[], changes: Partial<TopicPage> = {}): TopicPage {
  return { asOfMs: NOW, total: items.length, page: 1, size: 50, items, ...changes };
}
