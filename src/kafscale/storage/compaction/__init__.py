"""Log compaction by the owners of partitions: keeps the latest record of each key.

    rules                 when a partition is due, as Kafka's log cleaner decides it
    checkpoint            up to which offset each partition is compacted
    scheduler             which log is compacted next
    compactor             compacts one log, group by group, in log order
    worker_process        passes segments to a process, so that the event loop stays free
    transactions          what is left of aborted transactions, and of markers
    worker, log_cleaner   what that process does

The Spark job `compact` does the same for large backlogs, with the same rules and checkpoints.
"""
