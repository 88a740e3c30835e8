import { expect, it } from "vitest";

import { choicesOf, readableValue, withReadableValue } from "./configValues";

it("formats times and sizes", () => {
  expect(readableValue("retention.ms", "604800000")).toBe("7 d");
  expect(readableValue("retention.bytes", "-1")).toBe("no limit");
  expect(readableValue("max.compaction.lag.ms", "9223372036854775807")).toBe("no limit");
  expect(readableValue("segment.bytes", "104857600")).toBe("100 MiB");
  expect(readableValue("cleanup.policy", "delete")).toBeNull();
  expect(readableValue("min.insync.replicas", "1")).toBeNull();
  expect(withReadableValue("retention.ms", "604800000")).toBe("604800000 (7 d)");
  expect(withReadableValue("follower.replication.throttled.replicas", "")).toBe("none");
});

it("offers the possible values and the current one", () => {
  const config = { name: "cleanup.policy", value: "delete,compact", default: "delete", isSet: true, readOnly: false, sensitive: false, type: "LIST", documentation: null };
  expect(choicesOf(config)).toEqual(["delete", "compact", "compact,delete", "delete,compact"]);
  expect(choicesOf({ ...config, name: "remote.storage.enable", type: "BOOLEAN", value: "false" })).toEqual(["true", "false"]);
  expect(choicesOf({ ...config, name: "retention.ms", type: "LONG" })).toBeNull();
});
