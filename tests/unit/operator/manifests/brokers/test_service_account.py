"""What brokers may ask of Kubernetes: the one Secret with keys of the bucket, and nothing else."""

from kafscale.operator.manifests.brokers import service_account
from unit.operator.manifests.clusters import case, cluster


def test_brokers_may_read_the_keys_of_the_bucket_and_no_more():
    assert service_account.role(case("production")[0])["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["kafscale-s3-credentials"],
            "verbs": ["get"],
        }
    ]


def test_where_there_are_no_keys_there_is_no_right():
    """A rule with no names in it would be one for all Secrets."""
    without = cluster({"brokers": {}, "s3": {"bucket": "records", "credentialSource": "iam"}})
    assert service_account.role(without)["rules"] == []


def test_the_right_is_bound_to_the_account_of_the_pods():
    made = case("production")[0]
    account, role, binding = (
        service_account.service_account(made),
        service_account.role(made),
        service_account.binding(made),
    )
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    [subject] = binding["subjects"]
    assert subject["name"] == account["metadata"]["name"] == "production-broker"
    assert subject["namespace"] == account["metadata"]["namespace"]


def test_no_token_is_handed_out_and_a_role_can_be_named():
    made = service_account.service_account(case("everything")[0])
    assert made["automountServiceAccountToken"] is False
    assert made["metadata"]["annotations"] == {
        "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/brokers"
    }
