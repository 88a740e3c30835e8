import { describe, expect, it } from "vitest";

import { EMPTY_RECORD, problemsOf, toProduce, type Part } from "./newRecord";
import { NO_SCHEMA } from "./query";

function part(text: string, format: Part["format"] = "text"): Part {
  return { text, format, schema: NO_SCHEMA };
}

describe("a new record", () => {
  it("has no key if none was typed, and no headers without names", () => {
    const headers = [
      { id: 1, key: "trace", value: "" },
      { id: 2, key: "", value: "lost" },
    ];
    expect(toProduce({ ...EMPTY_RECORD, value: part("hello"), headers })).toEqual({
      partition: null,
      key: null,
      value: { text: "hello", format: "text", schema: null },
      headers: [{ key: "trace", value: "" }],
    });
  });

  it("without a value is a tombstone, and needs a key", () => {
    const tombstone = { ...EMPTY_RECORD, isTombstone: true };
    expect(problemsOf(tombstone).key).toContain("tombstone");
    expect(problemsOf({ ...tombstone, key: part("k") })).toEqual({});
    expect(toProduce({ ...tombstone, key: part("k"), value: part("left over") }).value).toBeNull();
  });

  it("is checked before it is sent", () => {
    expect(problemsOf({ ...EMPTY_RECORD, value: part("{", "json") }).value).toContain("not JSON");
    expect(problemsOf({ ...EMPTY_RECORD, value: part('{"a": 1}', "avro") })).toEqual({});
    expect(problemsOf({ ...EMPTY_RECORD, value: part("abc", "hex") }).value).toContain("hexadecimal");
    expect(problemsOf({ ...EMPTY_RECORD, value: part("ab CD", "hex") })).toEqual({});
    expect(problemsOf({ ...EMPTY_RECORD, key: part("a", "base64") }).key).toContain("Base64");
    expect(problemsOf({ ...EMPTY_RECORD, key: part("YQ==", "base64") })).toEqual({});
  });
});
