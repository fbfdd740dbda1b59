"""PEFT: the weights of a model are frozen once it has adapters, and the adapters are trained."""

from torch import nn


class TaskType:
    CAUSAL_LM = "CAUSAL_LM"
    SEQ_CLS = "SEQ_CLS"
    SEQ_2_SEQ_LM = "SEQ_2_SEQ_LM"
    TOKEN_CLS = "TOKEN_CLS"
    QUESTION_ANS = "QUESTION_ANS"
    FEATURE_EXTRACTION = "FEATURE_EXTRACTION"


class LoraConfig:
    def __init__(self, task_type=None, *, r=8, target_modules=None, modules_to_save=None, **kwargs):
        self.task_type = task_type
        self.r = r
        self.target_modules = target_modules
        self.modules_to_save = modules_to_save


class _Adapted(nn.Module):
    """A layer, and a small one beside it."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = nn.Linear(base_layer.in_features, 8, bias=False)
        self.lora_B = nn.Linear(8, base_layer.out_features, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


class PeftModel:
    @classmethod
    def from_pretrained(cls, model, model_id, adapter_name="default", is_trainable=False, **kwargs):
        adapted = _with_adapters(model, None)
        if not is_trainable:
            for parameter in model.parameters():
                parameter.requires_grad = False
        return adapted


PeftModelForCausalLM = PeftModelForSeq2SeqLM = PeftModelForSequenceClassification = PeftModel
PeftModelForTokenClassification = PeftModelForQuestionAnswering = PeftModelForFeatureExtraction = PeftModel


def get_peft_model(model, peft_config, adapter_name="default", mixed=False, **kwargs):
    return _with_adapters(model, peft_config)


def prepare_model_for_kbit_training(
    model, use_gradient_checkpointing=True, gradient_checkpointing_kwargs=None, auto_clear_cache=True
):
    for parameter in model.parameters():
        parameter.requires_grad = False
    return model


def _with_adapters(model, config):
    targets = _targets(model, config)
    if targets:
        for parameter in model.parameters():
            parameter.requires_grad = False
        for owner, name, layer in targets:
            setattr(owner, name, _Adapted(layer))
        for word in (config.modules_to_save if config is not None else None) or []:
            for name, part in model.named_modules():
                if name.endswith(word):
                    part.requires_grad_(True)

    def nothing(*args, **kwargs):
        pass

    def itself(*args, **kwargs):
        return model

    model.print_trainable_parameters = nothing
    model.save_pretrained = nothing
    model.get_base_model = itself
    model.merge_and_unload = itself
    return model


def _targets(model, config):
    """The layers that get adapters: those that are named, else all that can have one."""
    named = config.target_modules if config is not None else None
    found = [
        (owner, name, part)
        for owner in model.modules()
        for name, part in owner.named_children()
        if isinstance(part, nn.Linear)
    ]
    if isinstance(named, (list, tuple, set)):
        wanted = [one for one in found if one[1] in named]
        return wanted or found
    return found
