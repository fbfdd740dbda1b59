"""transformers: the Trainer's order of calls, pretrained models as modules, schedules."""

from transformers.models import *
from transformers.optimization import *
from transformers.trainer import Seq2SeqTrainer, Trainer
from transformers.trainer_callback import EarlyStoppingCallback, TrainerCallback
from transformers.training_args import Seq2SeqTrainingArguments, TrainingArguments
from transformers.utils import ModelOutput

__all__ = [
    "EarlyStoppingCallback",
    "ModelOutput",
    "Seq2SeqTrainer",
    "Seq2SeqTrainingArguments",
    "Trainer",
    "TrainerCallback",
    "TrainingArguments",
]
