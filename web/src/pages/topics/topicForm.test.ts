import { expect, it } from "vitest";

import { toCreateTopic, EMPTY_TOPIC, nameError } from "./topicForm";

it("rejects invalid names", () => {
  expect(["orders.eu-1_x", ""].map(nameError)).toEqual([null, null]);
  expect([".", "..", "a/b", "ä", "x".repeat(250)].map(nameError)).not.toContain(null);
});

it("sends only what is set, and leaves the rest to the cluster", () => {
  expect(toCreateTopic({ ...EMPTY_TOPIC, name: "orders" })).toEqual({ name: "orders", partitionCount: null, configs: {} });
  expect(
    toCreateTopic({
      name: "orders",
      partitionCount: 6,
      cleanupPolicy: "compact",
      retention: "-1",
      configs: [
        { name: " segment.bytes ", value: " 1048576 " },
        { name: "", value: "left empty" },
      ],
    }),
  ).toEqual({ name: "orders", partitionCount: 6, configs: { "cleanup.policy": "compact", "retention.ms": "-1", "segment.bytes": "1048576" } });
});
