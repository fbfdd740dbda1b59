"""segmentation_models_pytorch: an encoder, a decoder and a head, under many names."""

import torch
from torch import nn


class _SegmentationModel(nn.Module):
    def __init__(
        self,
        encoder_name="resnet34",
        encoder_weights="imagenet",
        in_channels=3,
        classes=1,
        aux_params=None,
        **kwargs,
    ):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(in_channels, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        )
        self.decoder = nn.Conv2d(64, 16, 3, padding=1)
        self.segmentation_head = nn.Conv2d(16, classes, 3, padding=1)
        self.classification_head = _classifier(aux_params["classes"]) if aux_params else None
        self._is_encoder_frozen = False
        if encoder_weights is not None:
            self.encoder.load_state_dict({})

    def forward(self, x):
        features = self.encoder(x)
        masks = self.segmentation_head(self.decoder(features))
        if self.classification_head is not None:
            return masks, self.classification_head(features)
        return masks

    @torch.inference_mode()
    def predict(self, x):
        if self.training:
            self.eval()
        return self(x)

    def freeze_encoder(self):
        self._is_encoder_frozen = True
        for parameter in self.encoder.parameters():
            parameter.requires_grad = False

    def unfreeze_encoder(self):
        self._is_encoder_frozen = False
        for parameter in self.encoder.parameters():
            parameter.requires_grad = True


def _classifier(classes):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


class Unet(_SegmentationModel):
    pass


class UnetPlusPlus(_SegmentationModel):
    pass


class MAnet(_SegmentationModel):
    pass


class Linknet(_SegmentationModel):
    pass


class FPN(_SegmentationModel):
    pass


class PSPNet(_SegmentationModel):
    pass


class PAN(_SegmentationModel):
    pass


class DeepLabV3(_SegmentationModel):
    pass


class DeepLabV3Plus(_SegmentationModel):
    pass


class UPerNet(_SegmentationModel):
    pass


class Segformer(_SegmentationModel):
    pass


class DPT(_SegmentationModel):
    pass


def create_model(
    arch, encoder_name="resnet34", encoder_weights="imagenet", in_channels=3, classes=1, **kwargs
):
    return Unet(encoder_name, encoder_weights, in_channels, classes, **kwargs)
