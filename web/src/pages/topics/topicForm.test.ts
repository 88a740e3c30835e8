import { expect, it } from "vitest";

import { asCreateTopic, EMPTY_TOPIC, nameProblem } from "./topicForm";

it("knows names that cannot be", () => {
  expect(["orders.eu-1_x", ""].map(nameProblem)).toEqual([null, null]);
  expect([".", "..", "a/b", "ä", "x".repeat(250)].map(nameProblem)).not.toContain(null);
});

it("asks for what was chosen, and leaves the rest to the cluster", () => {
  expect(asCreateTopic({ ...EMPTY_TOPIC, name: "orders" })).toEqual({ name: "orders", partitionCount: null, configs: {} });
  expect(
    asCreateTopic({
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
