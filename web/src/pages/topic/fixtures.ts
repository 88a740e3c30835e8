/** Test data: a topic. */

import type { Config, Partition, TopicDetail } from "../../api/contract";

export function partition(number: number, changes: Partial<Partition> = {}): Partition {
  return {
    partition: number,
    leader: 1,
    leaderEpoch: 4,
    state: "online",
    movingTo: null,
    startOffset: 0,
    rolledOffset: 100,
    highWatermark: 130,
    endOffset: 130,
    recordCount: 130,
    sizeBytes: 2048,
    ...changes,
  };
}

export const DETAIL: TopicDetail = {
  topic: {
    name: "orders",
    topicId: "id",
    internal: false,
    partitionCount: 2,
    leaderlessCount: 0,
    recordCount: 260,
    sizeBytes: 4096,
    dirtyRatio: null,
    produceBytesPerSecond: 1024,
    fetchBytesPerSecond: null,
  },
  partitions: [partition(0), partition(1, { leader: 2 })],
  throughput: [],
};

export function config(name: string, changes: Partial<Config> = {}): Config {
  return {
    name,
    value: "1000",
    default: "604800000",
    isSet: true,
    readOnly: false,
    sensitive: false,
    type: "LONG",
    documentation: "How long records are kept.",
    ...changes,
  };
}
