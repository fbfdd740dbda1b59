"""TD3 and DDPG: an actor, a critic, and a target of each."""

from stable_baselines3._critics import Actor, Pair
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


class TD3(OffPolicyAlgorithm):
    def __init__(self, policy=None, env=None, learning_rate=1e-3, *args, policy_delay=2, **kwargs):
        super().__init__(policy, env, learning_rate, *args, **kwargs)
        self.policy = Pair()
        self.policy_delay = policy_delay
        self.target_policy_noise = 0.2
        self.target_noise_clip = 0.5
        self.actor = self.policy.actor
        self.actor_target = Actor()
        self.actor_target.load_state_dict(self.actor.state_dict())
        self.critic = self.policy.critic
        self.critic_target = self.policy.critic_target
        self.actor_batch_norm_stats = []
        self.critic_batch_norm_stats = []
        self.actor_batch_norm_stats_target = []
        self.critic_batch_norm_stats_target = []
