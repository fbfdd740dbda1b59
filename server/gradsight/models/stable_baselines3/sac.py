"""SAC: an actor, a critic and its target; the weight of the entropy is learned by an optimizer of its own."""

import torch

from stable_baselines3._critics import Pair
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


class SAC(OffPolicyAlgorithm):
    def __init__(self, policy=None, env=None, learning_rate=3e-4, *args, **kwargs):
        super().__init__(policy, env, learning_rate, *args, **kwargs)
        self.policy = Pair()
        self.actor = self.policy.actor
        self.critic = self.policy.critic
        self.critic_target = self.policy.critic_target
        self.ent_coef = "auto"
        self.target_entropy = -2.0
        self.target_update_interval = 1
        self.use_sde = False
        self.log_ent_coef = torch.log(torch.ones(1)).requires_grad_(True)
        self.ent_coef_optimizer = torch.optim.Adam([self.log_ent_coef], lr=3e-4)
        self.batch_norm_stats = []
        self.batch_norm_stats_target = []
