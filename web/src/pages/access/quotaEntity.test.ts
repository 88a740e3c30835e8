import { describe, expect, it } from "vitest";

import { entityText, keysFor, parseRate } from "./quotaEntity";

describe("quotas", () => {
  it("describe their entity", () => {
    expect(entityText({ user: "alice", "client-id": null })).toBe("user alice, client-id (default)");
  });

  it("limit connections by IP address only", () => {
    const keys = ["producer_byte_rate", "connection_creation_rate"];
    expect(keysFor("ip", keys)).toEqual(["connection_creation_rate"]);
    expect(keysFor("user", keys)).toEqual(["producer_byte_rate"]);
  });

  it("are parsed with units", () => {
    expect(parseRate("producer_byte_rate", "1Mi")).toBe(1048576);
    expect(parseRate("producer_byte_rate", "10 MiB/s")).toBe(10485760);
    expect(parseRate("producer_byte_rate", "512")).toBe(512);
    expect(parseRate("request_percentage", "12.5%")).toBe(12.5);
    expect(parseRate("request_rate", "fast")).toBeNull();
    expect(parseRate("request_rate", "0")).toBeNull();
    expect(parseRate("request_rate", "1.2.3")).toBeNull();
  });
});
