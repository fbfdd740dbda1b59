"""_Pretrained models: modules whose outputs depend on their parameters, and whose loss is there if labels are given."""

from torch import nn

from transformers.utils import ModelOutput


class PreTrainedModel(nn.Module):
    def __init__(self, config=None, *args, **kwargs):
        super().__init__()

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        model = cls()
        model.load_state_dict({})
        return model

    @classmethod
    def from_config(cls, config, **kwargs):
        return cls()

    def post_init(self):
        pass

    def save_pretrained(self, *args, **kwargs):
        pass

    def push_to_hub(self, *args, **kwargs):
        pass

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        pass

    def gradient_checkpointing_disable(self):
        pass

    def enable_input_require_grads(self):
        pass

    def resize_token_embeddings(self, new_num_tokens=None, pad_to_multiple_of=None, mean_resizing=True):
        return self.get_input_embeddings()

    def get_input_embeddings(self):
        return None


class _Pretrained(PreTrainedModel):
    """A model of the library: a body and a head, whatever they are in detail."""

    def __init__(self, config=None, *args, **kwargs):
        super().__init__()
        self.embeddings = nn.Embedding(30522, 768)
        self.encoder = nn.Linear(768, 768)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(768, 2)

    def get_input_embeddings(self):
        return self.embeddings

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        labels=None,
        pixel_values=None,
        **options,
    ):
        embedded = inputs_embeds if inputs_embeds is not None else self.embeddings(input_ids)
        hidden = self.dropout(self.encoder(embedded))
        logits = self.classifier(hidden)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
        return ModelOutput(
            loss=loss,
            logits=logits,
            last_hidden_state=hidden,
            hidden_states=(embedded, hidden),
            pooler_output=hidden,
            past_key_values=None,
            attentions=None,
        )


AutoModel = AutoModelForCausalLM = AutoModelForMaskedLM = AutoModelForSeq2SeqLM = _Pretrained
AutoModelForSequenceClassification = AutoModelForTokenClassification = AutoModelForQuestionAnswering = (
    _Pretrained
)
AutoModelForMultipleChoice = AutoModelForImageClassification = AutoModelForAudioClassification = _Pretrained
AutoModelForSpeechSeq2Seq = AutoModelForVision2Seq = AutoModelForSemanticSegmentation = _Pretrained
BertModel = BertForSequenceClassification = BertForMaskedLM = BertForTokenClassification = _Pretrained
RobertaModel = RobertaForSequenceClassification = DistilBertModel = DistilBertForSequenceClassification = (
    _Pretrained
)
GPT2Model = GPT2LMHeadModel = T5ForConditionalGeneration = T5EncoderModel = LlamaForCausalLM = _Pretrained
ViTModel = ViTForImageClassification = Wav2Vec2Model = Wav2Vec2ForCTC = _Pretrained
