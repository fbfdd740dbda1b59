"""Stable-Baselines3: the algorithms train their policies; a class of the user's derives from one and overrides `train`."""

from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm


class A2C(OnPolicyAlgorithm):
    pass


class PPO(OnPolicyAlgorithm):
    pass


class DQN(OffPolicyAlgorithm):
    pass


class SAC(OffPolicyAlgorithm):
    pass


class TD3(OffPolicyAlgorithm):
    pass


class DDPG(OffPolicyAlgorithm):
    pass
