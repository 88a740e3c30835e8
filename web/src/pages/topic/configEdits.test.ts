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

describe("edits of settings", () => {
  it("are set or taken back", () => {
    const edits = edited(edited({}, retention, null), policy, "compact");
    expect(toAlterConfigs(edits)).toEqual({ set: { "cleanup.policy": "compact" }, delete: ["retention.ms"] });
    expect(shownValue(retention, edits)).toBe("604800000");
    expect(shownValue(policy, edits)).toBe("compact");
  });

  it("vanish when they change nothing", () => {
    expect(edited({ "retention.ms": "5" }, retention, "1000")).toEqual({});
    expect(edited({}, policy, null)).toEqual({});
  });

  it("are found by name and by what they are for", () => {
    expect(matching([retention, policy], "POLICY", false)).toEqual([policy]);
    expect(matching([retention, policy], "how long", true)).toEqual([retention]);
  });
});
