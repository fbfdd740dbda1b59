"""What unknown modules return, differentiated twice where several optimizers work: one item comes from the same layers."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

ACTOR_AND_CRITIC = """
def update(actor, critic, batch, for_actor, for_critic):
    state, action, gain = batch
    value = critic(state)
    chosen = F.log_softmax(actor(state), -1).gather(1, action)
    policy_loss = -(chosen * (gain - {value})).mean()
    value_loss = F.mse_loss(value, gain)
    for_actor.zero_grad()
    policy_loss.backward({retained})
    for_actor.step()
    for_critic.zero_grad()
    value_loss.backward(){expected}
    for_critic.step()
"""


def test_a_value_in_the_loss_of_the_actor_and_in_its_own() -> None:
    check(ACTOR_AND_CRITIC.format(value="value", retained="", expected="  # GS402"))


def test_a_value_that_is_detached_for_the_actor_is_fine() -> None:
    check(ACTOR_AND_CRITIC.format(value="value.detach()", retained="", expected=""))


ITEMS = """
def update(network, batch, for_actor, for_critic, weight, for_weight):
    state, gain = batch
    {taken}
    for_actor.zero_grad()
    (-{first} * gain).mean().backward()
    for_actor.step()
    for_critic.zero_grad()
    F.mse_loss({second}, gain).backward(){expected}
    for_critic.step()
"""


@pytest.mark.parametrize(
    ("taken", "one", "other"),
    [
        ("out = network(state)", "out['score']", "out['value']"),
        ("score, value = network(state)", "score", "value"),
        ("out = network(state)", "out.score", "out.value"),
    ],
)
def test_items_of_one_result_may_come_from_parts_with_nothing_in_common(
    taken: str, one: str, other: str
) -> None:
    check(ITEMS.format(taken=taken, first=one, second=other, expected=""))
    check(ITEMS.format(taken=taken, first=one, second=one, expected="  # GS402"))
