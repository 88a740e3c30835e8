import { describe, expect, it } from "vitest";

import { EMPTY_RECORD, validationErrors, toProduce, type Part } from "./newRecord";
import { NO_SCHEMA } from "./query";

function part(text: string, format: Part["format"] = "text"): Part {
  return { text, format, schema: NO_SCHEMA };
}

describe("a new record", () => {
  it("has a null key if the field is empty, and no headers without names", () => {
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

  it("needs a key if it is a tombstone", () => {
    const tombstone = { ...EMPTY_RECORD, isTombstone: true };
    expect(validationErrors(tombstone).key).toContain("tombstone");
    expect(validationErrors({ ...tombstone, key: part("k") })).toEqual({});
    expect(toProduce({ ...tombstone, key: part("k"), value: part("left over") }).value).toBeNull();
  });

  it("is validated", () => {
    expect(validationErrors({ ...EMPTY_RECORD, value: part("{", "json") }).value).toContain("JSON");
    expect(validationErrors({ ...EMPTY_RECORD, value: part('{"a": 1}', "avro") })).toEqual({});
    expect(validationErrors({ ...EMPTY_RECORD, value: part("abc", "hex") }).value).toContain("hexadecimal");
    expect(validationErrors({ ...EMPTY_RECORD, value: part("ab CD", "hex") })).toEqual({});
    expect(validationErrors({ ...EMPTY_RECORD, key: part("a", "base64") }).key).toContain("Base64");
    expect(validationErrors({ ...EMPTY_RECORD, key: part("YQ==", "base64") })).toEqual({});
  });
});
