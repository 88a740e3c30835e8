"""Records, found and written by people: what the console and agents have to look into topics.

    question     what may be asked
    browse       answers it, page after page; `strands` are the ways through partitions, `scan` and
                 `sieve` look at batches and records
    lens         bytes made readable; `codecs` are the schemas for that, `json_path` finds fields
    produce      writes a record; `text_bytes` makes bytes of what was typed

The law: nothing that is asked costs more than its bounds: records shown, bytes looked at, time.
What was not looked at is said, with where to go on.
"""
