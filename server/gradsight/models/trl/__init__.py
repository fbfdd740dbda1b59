"""TRL: its trainers derive from the Trainer of transformers and compute their loss in `compute_loss`."""

from transformers.trainer import Trainer
from transformers.training_args import TrainingArguments


class SFTTrainer(Trainer):
    pass


class DPOTrainer(Trainer):
    pass


class RewardTrainer(Trainer):
    pass


class KTOTrainer(Trainer):
    pass


class GRPOTrainer(Trainer):
    pass


class SFTConfig(TrainingArguments):
    pass


class DPOConfig(TrainingArguments):
    pass


class RewardConfig(TrainingArguments):
    pass


class KTOConfig(TrainingArguments):
    pass


class GRPOConfig(TrainingArguments):
    pass


class RLOOTrainer(Trainer):
    pass


class RLOOConfig(TrainingArguments):
    pass
