"""Tests of jobs that authenticate to brokers, in the driver and in every task."""

import pytest

from kafscale.client.security import Security
from kafscale.errors import KafscaleError
from kafscale.spark.jobs.replay import job as replay_job
from kafscale.spark.read.location import Location
from services.broker import HOST, BrokerProcess
from services.kafka_records import Sent, create, produce, read
from services.process import free_port

PASSWORD = "job-password"  # noqa: S105 - of a user that lives as long as this test.
COUNT = 50


@pytest.fixture
def secured(tmp_path):
    """A broker, and the address of a SASL listener."""
    broker = BrokerProcess(tmp_path)
    address = f"{HOST}:{free_port()}"
    broker.settings |= {
        "broker_listeners": f"PLAINTEXT://{broker.address},SASL_PLAINTEXT://{address}",
        "sasl_enabled_mechanisms": "PLAIN",
        "sasl_plain_users": f"job:{PASSWORD}",
    }
    with broker:
        create(broker.address, "orders", 2)
        produce(
            broker.address,
            "orders",
            [Sent(each % 2, None, b"x", 1_700_000_000_000) for each in range(COUNT)],
        )
        yield broker, address


def job(password):
    return Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="job", password=password)


@pytest.mark.long
def test_replay_authenticates(secured, spark):
    broker, address = secured
    job_settings = replay_job.ReplaySettings(
        location=Location.parse(str(broker.data)),
        topic="orders",
        target="copies",
        bootstrap=address,
        security=job(PASSWORD),
    )
    assert PASSWORD not in repr(job_settings)
    replay_job.run(spark, job_settings, progress=False)
    copies = read(broker.address, "copies")
    assert sum(map(len, copies.values())) == COUNT
    assert PASSWORD not in broker.logged()


@pytest.mark.long
def test_replay_reports_a_wrong_password(secured, spark):
    broker, address = secured
    job_settings = replay_job.ReplaySettings(
        location=Location.parse(str(broker.data)),
        topic="orders",
        target="copies",
        bootstrap=address,
        security=job("wrong"),
    )
    with pytest.raises(KafscaleError, match="rejected user job"):
        replay_job.run(spark, job_settings, progress=False)
