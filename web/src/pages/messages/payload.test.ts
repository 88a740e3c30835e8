import { expect, it } from "vitest";

import type { Payload } from "../../api/contract";
import { preview } from "./payload";

function payload(format: Payload["format"], text: string): Payload {
  return { format, text, sizeBytes: text.length, isTruncated: false, schemaId: null, problem: null };
}

it("puts JSON and text on one line", () => {
  expect(preview(payload("json", '{\n  "a": [1,\n 2]\n}'))).toBe('{"a":[1,2]}');
  expect(preview(payload("json", '{"cut": "of'))).toBe('{"cut": "of');
  expect(preview(payload("text", "a\n\tb"))).toBe("a b");
  expect(preview(payload("text", "x".repeat(500)))).toHaveLength(161);
  expect(preview(null)).toBe("");
});
