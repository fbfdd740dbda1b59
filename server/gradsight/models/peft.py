"""PEFT: a model with adapters is called, trained and saved as the model is."""


class PeftModel:
    @classmethod
    def from_pretrained(cls, model, *args, **options):
        return with_adapters(model)


PeftModelForCausalLM = PeftModelForSeq2SeqLM = PeftModelForSequenceClassification = PeftModel
PeftModelForTokenClassification = PeftModelForQuestionAnswering = PeftModelForFeatureExtraction = PeftModel


def get_peft_model(model, peft_config, adapter_name="default", **options):
    return with_adapters(model)


def prepare_model_for_kbit_training(model, *args, **options):
    return model


def with_adapters(model):
    def nothing(*args, **options):
        pass

    def itself(*args, **options):
        return model

    model.print_trainable_parameters = nothing
    model.save_pretrained = nothing
    model.get_base_model = itself
    model.merge_and_unload = itself
    return model
