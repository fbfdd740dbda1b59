"""segmentation_models_pytorch: an encoder, a decoder and a head, under many names."""

from torch import nn


class SegmentationModel(nn.Module):
    def __init__(
        self, encoder_name="resnet34", encoder_weights="imagenet", in_channels=3, classes=1, **options
    ):
        super().__init__()
        self.encoder = nn.Conv2d(in_channels, 64, 3, padding=1)
        self.decoder = nn.Conv2d(64, 16, 3, padding=1)
        self.segmentation_head = nn.Conv2d(16, classes, 3, padding=1)

    def forward(self, x):
        return self.segmentation_head(self.decoder(self.encoder(x)))

    def predict(self, x):
        self.eval()
        return self(x)


Unet = UnetPlusPlus = MAnet = Linknet = FPN = PSPNet = PAN = DeepLabV3 = DeepLabV3Plus = SegmentationModel


def create_model(
    arch, encoder_name="resnet34", encoder_weights="imagenet", in_channels=3, classes=1, **options
):
    return SegmentationModel(encoder_name, encoder_weights, in_channels, classes)
