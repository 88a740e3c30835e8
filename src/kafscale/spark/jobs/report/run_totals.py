"""The totals of a report for its run record, with the cost of each topic.

The cost of a topic per day is that of its storage, and its share of the request cost by incoming
bytes. Request cost is the measured one, or that of the default settings if the WAL does not show
it. Pure.
"""

from collections.abc import Mapping

from kafscale.admin.cluster.cost import MONTH_DAYS
from kafscale.spark.jobs.report.cost import Profile
from kafscale.spark.jobs.report.job import Report, TopicReport
from kafscale.storage.job_runs import TOPICS_MAX, Detail, TopicRun


def run_totals(report: Report) -> tuple[Mapping[str, Detail], Mapping[str, TopicRun]]:
    """Return the details of a run, and its topics, or the largest if there are too many."""
    profile = report.profiles[0]
    requests_per_day = (profile.bill.puts + profile.bill.gets) / MONTH_DAYS
    largest = sorted(report.topics, key=lambda topic: topic.stored_bytes, reverse=True)
    return _details(report), {
        topic.topic: _topic_run(topic, requests_per_day * _share(topic, report))
        for topic in largest[:TOPICS_MAX]
    }


def _details(report: Report) -> dict[str, Detail]:
    details: dict[str, Detail] = {
        "topics": len(report.topics),
        "brokers": report.brokers,
        "records": report.records,
        "storedBytes": report.stored_bytes,
        "bytesPerDay": round(report.bytes_per_day),
        "damaged": len(report.damaged),
    }
    for profile in report.profiles:
        details |= {f"{profile.name}.{name}": value for name, value in _bill(profile).items()}
    return details


def _bill(profile: Profile) -> dict[str, Detail]:
    bill = profile.bill
    return {
        "storageDollarsPerMonth": bill.storage,
        "putDollarsPerMonth": bill.puts,
        "getDollarsPerMonth": bill.gets,
        "s3DollarsPerMonth": bill.s3,
        "dollarsPerMonth": bill.total,
        "putsPerDay": round(profile.puts_per_day.total),
        "getsPerDay": round(profile.gets_per_day),
        "s3DollarsPerDay": bill.s3 / MONTH_DAYS,
    }


def _topic_run(topic: TopicReport, requests_dollars_per_day: float) -> TopicRun:
    storage = topic.storage_dollars / MONTH_DAYS
    return TopicRun(
        records_in=topic.records,
        size_bytes=topic.stored_bytes,
        newest_timestamp_ms=topic.newest_ms,
        details={
            "partitions": topic.partitions,
            "segments": topic.segments,
            "walBytes": topic.wal_bytes,
            "bytesPerDay": round(topic.bytes_per_day),
            "storageDollarsPerDay": storage,
            "requestDollarsPerDay": requests_dollars_per_day,
            "dollarsPerDay": storage + requests_dollars_per_day,
        },
    )


def _share(topic: TopicReport, report: Report) -> float:
    return topic.bytes_per_day / report.bytes_per_day if report.bytes_per_day else 0.0
