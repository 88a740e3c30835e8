"""What happens to brokers' pods, step by step, whatever happens in between."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.operator.cluster.rollout_plan import (
    ROLLOUT,
    SCALE_DOWN,
    Pod,
    Remove,
    Restart,
    Scale,
    View,
    Wait,
    plan,
)

NEW, OLD = "new", "old"


def pod(ordinal: int, revision: str = NEW, **more: object) -> Pod:
    values = {"is_ready": True, **more}
    return Pod(name=f"b-{ordinal}", ordinal=ordinal, uid=f"u{ordinal}", revision=revision, **values)  # type: ignore[arg-type]


def view(*pods: Pod, wanted: int | None = 3, replicas: int = 3) -> View:
    return View(pods=pods, replicas=replicas, wanted=wanted, revision=NEW)


def test_all_is_well() -> None:
    assert plan(view(pod(0), pod(1), pod(2))) is None


def test_more_are_wanted() -> None:
    assert plan(view(pod(0), replicas=1)) == Scale(3)


def test_fewer_are_wanted_and_the_last_goes_first() -> None:
    assert plan(view(pod(0), pod(1), pod(2), wanted=1)) == Remove(pod(2))


def test_who_is_removed_need_not_be_ready_to_come_back() -> None:
    surplus_is_gone = view(pod(0), wanted=1, replicas=1)
    assert plan(surplus_is_gone) is None


def test_what_autoscaling_has_chosen_is_left_alone() -> None:
    assert plan(view(pod(0), pod(1), wanted=None, replicas=2)) is None


def test_one_at_a_time_is_restarted_from_the_end() -> None:
    pods = pod(0, OLD), pod(1, OLD), pod(2, OLD)
    assert plan(view(*pods)) == Restart(pods[2], "out of date")


def test_nobody_is_touched_while_another_is_not_ready() -> None:
    assert plan(view(pod(0, OLD), pod(1), pod(2, is_ready=False))) == Wait("b-2 is not ready")
    assert plan(view(pod(0, OLD), pod(1), pod(2, is_serving=False))) == Wait(
        "b-2 has not joined the cluster yet"
    )
    assert plan(view(pod(0, OLD), pod(1), pod(2, is_terminating=True))) == Wait("b-2 is stopping")
    assert isinstance(plan(view(pod(0, OLD), pod(1))), Wait)


def test_a_mistake_can_be_undone() -> None:
    stuck = pod(2, OLD, is_ready=False)
    step = plan(view(pod(0, OLD), pod(1, OLD), stuck))
    assert step == Restart(stuck, "out of date and not ready")


def test_who_was_drained_in_vain_is_restarted() -> None:
    drained = pod(2, drained_for=SCALE_DOWN)
    assert plan(view(pod(0), pod(1), drained)) == Restart(drained, "drained and wanted after all")


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
def test_a_broker_that_serves_is_touched_only_when_all_others_do(
    pods: list[Pod], replicas: int, wanted: int | None
) -> None:
    numbered = [
        replace(each, ordinal=index, name=f"b-{index}", uid=f"u{index}")
        for index, each in enumerate(pods)
    ]
    step = plan(view(*numbered, wanted=wanted, replicas=replicas))
    if isinstance(step, Restart | Remove) and step.pod.is_ready:
        assert all(each.is_ready and not each.is_terminating for each in numbered)
        assert len(numbered) >= replicas
    if wanted is None:
        assert not isinstance(step, Scale | Remove)


@given(st.integers(1, 6), st.integers(1, 6), st.sets(st.integers(0, 5)))
def test_it_comes_to_an_end(replicas: int, wanted: int, outdated: set[int]) -> None:
    """Whatever there is, every step brings it nearer to what is wanted, and none is repeated."""
    pods = {each: pod(each, OLD if each in outdated else NEW) for each in range(replicas)}
    for _ in range(100):
        step = plan(view(*pods.values(), wanted=wanted, replicas=replicas))
        match step:
            case None:
                break
            case Scale(replicas=replicas):
                pods |= {each: pod(each) for each in range(replicas) if each not in pods}
            case Remove(pod=gone):
                replicas -= 1
                del pods[gone.ordinal]
            case Restart(pod=restarted):
                pods[restarted.ordinal] = pod(restarted.ordinal)
            case Wait():
                raise AssertionError(step)
    assert sorted(pods) == list(range(wanted))
    assert all(each.revision == NEW for each in pods.values())
