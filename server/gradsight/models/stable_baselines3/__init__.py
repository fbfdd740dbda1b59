"""Stable-Baselines3: the algorithms train their policies; a class of the user's derives from one and overrides `train`."""

from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.dqn import DQN
from stable_baselines3.sac import SAC
from stable_baselines3.td3 import TD3


class A2C(OnPolicyAlgorithm):
    pass


class PPO(OnPolicyAlgorithm):
    pass


class DDPG(TD3):
    pass


__all__ = ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"]
