import { describe, expect, it } from "vitest";

import type { Config } from "../../api/contract";
import { edited, matching, shownValue, toAlterConfigs } from "./configEdits";

const retention: Config = {
  name: "retention.ms",
  value: "1000",
  default: "604800000",
  isSet: true,
  readOnly: false,
  sensitive: false,
  type: "LONG",
  documentation: "How long records are kept.",
};
const policy: Config = { ...retention, name: "cleanup.policy", value: "delete", default: "delete", isSet: false };

describe("config edits", () => {
  it("set or reset configs", () => {
    const edits = edited(edited({}, retention, null), policy, "compact");
    expect(toAlterConfigs(edits)).toEqual({ set: { "cleanup.policy": "compact" }, delete: ["retention.ms"] });
    expect(shownValue(retention, edits)).toBe("604800000");
    expect(shownValue(policy, edits)).toBe("compact");
  });

  it("are removed when they change nothing", () => {
    expect(edited({ "retention.ms": "5" }, retention, "1000")).toEqual({});
    expect(edited({}, policy, null)).toEqual({});
  });

  it("are searched by name and documentation", () => {
    expect(matching([retention, policy], "POLICY", false)).toEqual([policy]);
    expect(matching([retention, policy], "how long", true)).toEqual([retention]);
  });
});
