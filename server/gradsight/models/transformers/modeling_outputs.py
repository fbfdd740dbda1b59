"""The outputs of models, which differ in the names of their fields only."""

from transformers.utils import ModelOutput

BaseModelOutput = BaseModelOutputWithPooling = BaseModelOutputWithPast = CausalLMOutput = ModelOutput
CausalLMOutputWithPast = MaskedLMOutput = Seq2SeqLMOutput = SequenceClassifierOutput = ModelOutput
TokenClassifierOutput = QuestionAnsweringModelOutput = ImageClassifierOutput = ModelOutput
