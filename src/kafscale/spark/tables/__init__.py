"""Tables of the lake: Iceberg, Delta and plain Parquet, filled alike.

    base        what a table is: versions, changes, files; how far it has come with its topic
    times       partitions by hour, day or month
    filesystem     where files are
    writer      rows become files
    iceberg     tables of Iceberg; `iceberg_files` is what tasks need of one
    delta       tables of Delta
    parquet     directories of Parquet
    maintenance merges small files, forgets old versions, removes what nobody names

Needs no Spark and no jars.
"""
