"""Tests of the rollout plan, step by step and for any state."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.operator.cluster.rollout_plan import (
    ROLLOUT,
    SCALE_DOWN,
    Pod,
    Remove,
    Restart,
    RolloutState,
    Scale,
    Wait,
    plan,
)

NEW, OLD = "new", "old"


def pod(ordinal: int, revision: str = NEW, **more: object) -> Pod:
    values = {"is_ready": True, **more}
    return Pod(name=f"b-{ordinal}", ordinal=ordinal, uid=f"u{ordinal}", revision=revision, **values)  # type: ignore[arg-type]


def state(*pods: Pod, desired: int | None = 3, replicas: int = 3) -> RolloutState:
    return RolloutState(pods=pods, replicas=replicas, desired=desired, revision=NEW)


def test_no_step_if_everything_matches() -> None:
    assert plan(state(pod(0), pod(1), pod(2))) is None


def test_scale_up() -> None:
    assert plan(state(pod(0), replicas=1)) == Scale(3)


def test_scale_down_removes_the_last_pod_first() -> None:
    assert plan(state(pod(0), pod(1), pod(2), desired=1)) == Remove(pod(2))


def test_scale_down_of_missing_pods() -> None:
    surplus_is_gone = state(pod(0), desired=1, replicas=1)
    assert plan(surplus_is_gone) is None


def test_number_chosen_by_autoscaling_is_kept() -> None:
    assert plan(state(pod(0), pod(1), desired=None, replicas=2)) is None


def test_outdated_pods_are_restarted_one_at_a_time_from_the_end() -> None:
    pods = pod(0, OLD), pod(1, OLD), pod(2, OLD)
    assert plan(state(*pods)) == Restart(pods[2], "out of date")


def test_no_pod_is_touched_while_another_is_not_ready() -> None:
    assert plan(state(pod(0, OLD), pod(1), pod(2, is_ready=False))) == Wait("b-2 is not ready")
    assert plan(state(pod(0, OLD), pod(1), pod(2, is_serving=False))) == Wait(
        "b-2 has not joined the cluster yet"
    )
    assert plan(state(pod(0, OLD), pod(1), pod(2, is_terminating=True))) == Wait("b-2 is stopping")
    assert isinstance(plan(state(pod(0, OLD), pod(1))), Wait)


def test_broken_template_can_be_replaced() -> None:
    stuck = pod(2, OLD, is_ready=False)
    step = plan(state(pod(0, OLD), pod(1, OLD), stuck))
    assert step == Restart(stuck, "out of date and not ready")


def test_drained_pod_that_is_desired_again_is_restarted() -> None:
    drained = pod(2, drained_for=SCALE_DOWN)
    assert plan(state(pod(0), pod(1), drained)) == Restart(drained, "drained, but desired again")


PODS = st.builds(
    pod,
    st.just(0),
    st.sampled_from([NEW, OLD]),
    is_ready=st.booleans(),
    is_terminating=st.booleans(),
    is_serving=st.booleans(),
    drained_for=st.sampled_from(["", ROLLOUT, SCALE_DOWN]),
)


@given(st.lists(PODS, max_size=6), st.integers(0, 6), st.none() | st.integers(1, 6))
def test_serving_broker_is_touched_only_if_all_others_serve(
    pods: list[Pod], replicas: int, desired: int | None
) -> None:
    numbered = [
        replace(each, ordinal=index, name=f"b-{index}", uid=f"u{index}")
        for index, each in enumerate(pods)
    ]
    step = plan(state(*numbered, desired=desired, replicas=replicas))
    if isinstance(step, Restart | Remove) and step.pod.is_ready:
        assert all(each.is_ready and not each.is_terminating for each in numbered)
        assert len(numbered) >= replicas
    if desired is None:
        assert not isinstance(step, Scale | Remove)


@given(st.integers(1, 6), st.integers(1, 6), st.sets(st.integers(0, 5)))
def test_rollout_terminates(replicas: int, desired: int, outdated: set[int]) -> None:
    """Every step leads towards the desired state, and none is repeated."""
    pods = {each: pod(each, OLD if each in outdated else NEW) for each in range(replicas)}
    for _ in range(100):
        step = plan(state(*pods.values(), desired=desired, replicas=replicas))
        match step:
            case None:
                break
            case Scale(replicas=replicas):
                pods |= {each: pod(each) for each in range(replicas) if each not in pods}
            case Remove(pod=removed):
                replicas -= 1
                del pods[removed.ordinal]
            case Restart(pod=restarted):
                pods[restarted.ordinal] = pod(restarted.ordinal)
            case Wait():
                raise AssertionError(step)
    assert sorted(pods) == list(range(desired))
    assert all(each.revision == NEW for each in pods.values())
