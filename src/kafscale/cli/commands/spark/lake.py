"""`kafscale spark lake`: write topics to lake tables, exactly once."""


# ruff: noqa: D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kafscale.cli.commands.spark import lake_options as options
from kafscale.cli.commands.spark.session import (
    PathOption,
    SparkOptions,
    recorded_session,
    resolve_location,
    show,
)
from kafscale.cli.options import parse_option, parse_pairs
from kafscale.errors import InvalidRequestError
from kafscale.text.units import parse_duration, parse_size

if TYPE_CHECKING:
    from kafscale.spark.jobs.lake.settings import LakeSettings
    from kafscale.spark.source.location import Location
    from kafscale.spark.source.subscription import Subscription
    from kafscale.spark.tables.target import Target
    from kafscale.spark.values import ValueSpec


class Request(options.LakeOptions):
    """The options, translated to settings of the job."""

    def settings(self, location: "Location") -> "LakeSettings":
        from kafscale.spark.jobs.lake.settings import LakeSettings, Mode, Start
        from kafscale.spark.tables.maintenance import DAY_MS, MaintenanceOptions
        from kafscale.spark.tables.time_partitions import TimeGranularity
        from kafscale.spark.tables.writer import Encoding

        days = self.expire_snapshots
        return LakeSettings(
            location=location,
            subscription=self._subscription(),
            values=self._values(),
            mode=Mode(self.mode),
            keys=tuple(self.key),
            granularity=TimeGranularity(self.partition_by) if self.partition_by else None,
            start=Start(self.start),
            fail_on_data_loss=not self.skip_lost,
            is_once=self.once,
            interval_ms=parse_option("--interval", self.interval, parse_duration),
            commit_bytes_max=parse_option("--commit-bytes", self.commit_bytes, parse_size),
            commit_records_max=self.commit_records,
            encoding=Encoding(compression=str(self.compression)),
            maintenance=MaintenanceOptions(
                merges_files=self.compact_files,
                expires_after_ms=None if days is None else days * DAY_MS,
            ),
        )

    def target(self, location: "Location") -> "Target":
        """Where tables are written; with the credentials of the bucket of the records."""
        from kafscale.spark.tables.target import TableFormat, Target

        is_plain = self.table_format == "parquet"
        if is_plain and (self.compact_files or self.mode == "upsert"):
            raise InvalidRequestError("plain Parquet tables are append-only: use Iceberg or Delta")
        known: dict[str, str] = {}
        if location.bucket is not None and self.to.startswith("s3"):
            bucket = location.bucket
            known = {
                "s3.endpoint": bucket.endpoint,
                "s3.region": bucket.region,
                "s3.access-key-id": bucket.access_key,
                "s3.secret-access-key": bucket.secret_key,
                "s3.session-token": bucket.session_token,
                "s3.role-arn": bucket.role_arn,
            }
        given = dict(parse_pairs(self.catalog_property))
        return Target(
            table_format=TableFormat(self.table_format),
            path=self.to,
            catalog=self.catalog,
            properties={key: text for key, text in known.items() if text} | given,
            table=self.table,
        )

    def _subscription(self) -> "Subscription":
        from kafscale.spark.source.subscription import Subscription

        if bool(self.topics) == bool(self.pattern):
            raise typer.BadParameter("name topics, or give --pattern", param_hint="TOPICS")
        if self.topics:
            return Subscription(names=frozenset(self.topics))
        return Subscription.to_pattern(self.pattern)

    def _values(self) -> "ValueSpec | None":
        """How to decode values; None keeps the bytes."""
        from kafscale.spark.values import RegistryAccess, ValueSpec, pin_schema

        access = None
        if self.registry:
            access = RegistryAccess(
                url=self.registry,
                user=self.registry_user,
                password=self.registry_password,
                token=self.registry_token,
            )
        if self.value_format == "raw" and not (self.schema or access):
            return None
        return pin_schema(
            ValueSpec(
                format=str(self.value_format),
                schema=_text("--schema", self.schema),
                descriptors=self.descriptors.read_bytes() if self.descriptors else b"",
                message=self.message,
                registry=access,
                subject=self.subject,
            )
        )


def lake(*, request: Request, path: PathOption = "", spark: SparkOptions) -> None:
    """Write topics to lake tables, exactly once; the progress is stored in each table.

    The job runs until it is stopped, or with --once until it has read all existing records. It can
    be restarted at any time. Concurrent runs write no record twice: of commits at the same time one
    succeeds, and the others repeat their work; a run fails after 100 such conflicts in a row.
    Records that cannot be decoded go to the table NAME_dead_letters, with the reason.

    \b
    kafscale spark lake orders --to lake --once
    kafscale spark lake orders --to lake -f json --partition-by day
    kafscale spark lake customers --to lake -t delta -f json --mode upsert --key id
    kafscale spark lake --pattern 'shop.*' --catalog prod -f avro --registry http://registry:8081
    """
    from kafscale.spark.jobs.lake import job

    location = resolve_location(path)
    settings, target = request.settings(location), request.target(location)
    with recorded_session("lake", location, request.topics or (), spark) as (session, record):
        summary = job.run(session, settings, target, on_progress=record.update_progress)
        record.set_summary(summary)
    show(summary, spark.output)


def _text(option: str, given: str) -> str:
    """The text, or the content of the file that it names after an @."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
