import { expect, it } from "vitest";

import { choicesOf, inWords, withWords } from "./configWords";

it("says times and sizes in words", () => {
  expect(inWords("retention.ms", "604800000")).toBe("7 d");
  expect(inWords("retention.bytes", "-1")).toBe("no limit");
  expect(inWords("max.compaction.lag.ms", "9223372036854775807")).toBe("no limit");
  expect(inWords("segment.bytes", "104857600")).toBe("100 MiB");
  expect(inWords("cleanup.policy", "delete")).toBeNull();
  expect(inWords("min.insync.replicas", "1")).toBeNull();
  expect(withWords("retention.ms", "604800000")).toBe("604800000 (7 d)");
  expect(withWords("follower.replication.throttled.replicas", "")).toBe("none");
});

it("offers what can be chosen, and what is set", () => {
  const config = { name: "cleanup.policy", value: "delete,compact", default: "delete", isSet: true, readOnly: false, sensitive: false, type: "LIST", documentation: null };
  expect(choicesOf(config)).toEqual(["delete", "compact", "compact,delete", "delete,compact"]);
  expect(choicesOf({ ...config, name: "remote.storage.enable", type: "BOOLEAN", value: "false" })).toEqual(["true", "false"]);
  expect(choicesOf({ ...config, name: "retention.ms", type: "LONG" })).toBeNull();
});
