"""Who may do what: users with rules, or with roles, try everything, and get as far as they may."""


import pytest

from services.attempts import OK

pytestmark = pytest.mark.timeout(120)

TOPIC = "TOPIC_AUTHORIZATION_FAILED"
GROUP = "GROUP_AUTHORIZATION_FAILED"
CLUSTER = "CLUSTER_AUTHORIZATION_FAILED"

USERS = ("alice", "bob", "carol", "dave")
TO_TOPICS = {
    # Who:                alice  bob    carol  dave
    "produce":            (OK,    TOPIC, TOPIC, TOPIC),
    "produce_idempotently": (OK, CLUSTER, CLUSTER, CLUSTER),
    "read":               (TOPIC, OK,    TOPIC, TOPIC),
    "list_offsets":       (OK,    OK,    TOPIC, OK),
    "describe_topic":     (OK,    OK,    TOPIC, OK),
    "create_topic":       (TOPIC, TOPIC, TOPIC, OK),
    "add_partitions":     (TOPIC, TOPIC, TOPIC, OK),
    "describe_configs":   (TOPIC, TOPIC, TOPIC, OK),
    "alter_configs":      (TOPIC, TOPIC, TOPIC, OK),
    "delete_records":     (TOPIC, TOPIC, TOPIC, OK),
    "delete_topic":       (TOPIC, TOPIC, TOPIC, OK),
    "sees_topic":         (True,  True,  False, True),
}  # fmt: skip
TO_GROUPS = {
    "list_committed":     (GROUP, OK,    GROUP, OK),
    "describe_group":     (GROUP, OK,    GROUP, OK),
    "sees_group":         (False, True,  False, True),
    "delete_group":       (GROUP, GROUP, GROUP, OK),
}  # fmt: skip
TO_BOTH = {
    "commit":             (GROUP, OK,    GROUP, GROUP),
    "be_member":          (GROUP, OK,    GROUP, GROUP),
}  # fmt: skip
TO_CLUSTER = {
    "describe_cluster":   (OK,      OK,      OK,      OK),
    "describe_broker":    (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "list_rules":         (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "add_rule":           (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "list_users":         (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
}  # fmt: skip
