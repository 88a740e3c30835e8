import { describe, expect, it } from "vitest";

import { DEFAULT_QUERY, NO_SCHEMA, queryOfRecord, readQuery, toBrowse, writeQuery } from "./query";

const schemas = { key: NO_SCHEMA, value: NO_SCHEMA };

describe("the query in the URL", () => {
  it("omits default values", () => {
    expect(writeQuery(DEFAULT_QUERY).toString()).toBe("");
    expect(readQuery(new URLSearchParams())).toEqual(DEFAULT_QUERY);
  });

  it("is read as it was written", () => {
    const query = {
      ...DEFAULT_QUERY,
      start: "time" as const,
      timeMs: 1_700_000_000_000,
      partitions: [0, 3],
      limit: 100,
      isolation: "read_committed" as const,
      key: "a&b=c",
      text: "größe",
      jsonPath: "customer.city",
      jsonEquals: "Bern",
      header: "trace",
      keyFormat: "hex" as const,
      valueFormat: "avro" as const,
    };
    expect(readQuery(new URLSearchParams(writeQuery(query).toString()))).toEqual(query);
  });

  it("ignores invalid values", () => {
    const query = readQuery(new URLSearchParams("from=yesterday&offset=-4&partitions=x,2,2,1&limit=9&valueFormat=xml"));
    expect(query).toEqual({ ...DEFAULT_QUERY, partitions: [1, 2] });
  });

  it("of one record starts at its offset, without filters", () => {
    const query = queryOfRecord({ partition: 2, offset: 41 }, { ...DEFAULT_QUERY, text: "x", valueFormat: "json" });
    expect(writeQuery(query).toString()).toBe("from=offset&offset=41&partitions=2&valueFormat=json");
  });
});

describe("the API request", () => {
  it("has a schema only for formats that use one", () => {
    const query = { ...DEFAULT_QUERY, keyFormat: "text" as const, valueFormat: "protobuf" as const };
    const request = toBrowse(query, { "0": 7 }, { ...schemas, value: { text: "syntax", message: "Order" } });
    expect(request.key).toEqual({ format: "text", schema: null });
    expect(request.value).toEqual({ format: "protobuf", schema: { kind: "protobuf", text: "syntax", message: "Order" } });
    expect(request.cursor).toEqual({ "0": 7 });
  });
});
