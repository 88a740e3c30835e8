"""Browses and writes records of a topic, for the console and the MCP server.

    query         a query and its validation
    browse        runs a query and returns pages; `cursor` reads partitions, `scan` selects
                  records
    renderer      payloads as text; `codecs` has the schemas, `json_path` finds fields
    produce       encodes what a user entered, and writes a record

Every query is bounded in records, bytes and time. A result says what was not read, and where to
continue.
"""
