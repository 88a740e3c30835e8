"""Lake tables: Iceberg, Delta and plain Parquet, behind one interface.

    base              the interface: versions, changes, files, progress
    target            the table of a topic: format, path, name
    time_partitions   partitioning by hour, day or month
    filesystem        where files are stored
    writer            writes rows as Parquet files
    data_files        reads Parquet files; staged files
    iceberg, delta, parquet   the formats, for the driver
    iceberg_files     the files of an Iceberg table, as tasks write them
    maintenance       merges small files, expires versions, removes orphaned files

Needs no Spark and no jars.
"""
