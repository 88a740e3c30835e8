"""Tests of the brokers' permissions: the Secret with the keys of the bucket, and nothing else."""

from kafscale.operator.manifests.brokers import service_account
from unit.operator.manifests.clusters import case, cluster


def test_role_allows_only_the_secret_of_the_bucket():
    assert service_account.role(case("production")[0])["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["kafscale-s3-credentials"],
            "verbs": ["get"],
        }
    ]


def test_role_is_empty_without_a_secret():
    """A rule without resource names would allow all Secrets."""
    without = cluster({"brokers": {}, "s3": {"bucket": "records", "credentialSource": "iam"}})
    assert service_account.role(without)["rules"] == []


def test_role_is_bound_to_the_account_of_the_pods():
    built = case("production")[0]
    account, role, binding = (
        service_account.service_account(built),
        service_account.role(built),
        service_account.binding(built),
    )
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    [subject] = binding["subjects"]
    assert subject["name"] == account["metadata"]["name"] == "production-broker"
    assert subject["namespace"] == account["metadata"]["namespace"]


def test_account_has_no_token_and_the_given_annotations():
    built = service_account.service_account(case("everything")[0])
    assert built["automountServiceAccountToken"] is False
    assert built["metadata"]["annotations"] == {
        "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/brokers"
    }
