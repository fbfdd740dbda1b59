"""Weights that were trained before: a model that has loaded them is trained on from there."""


class WeightsEnum:
    """One set of weights; `transforms` and `meta` are about images and carry no graph."""


class _Weights(WeightsEnum):
    IMAGENET1K_V1 = IMAGENET1K_V2 = IMAGENET1K_FEATURES = WeightsEnum()
    IMAGENET1K_SWAG_E2E_V1 = IMAGENET1K_SWAG_LINEAR_V1 = WeightsEnum()
    COCO_V1 = COCO_LEGACY = COCO_WITH_VOC_LABELS_V1 = KINETICS400_V1 = WeightsEnum()
    KINETICS400_IMAGENET22K_V1 = WeightsEnum()
    DEFAULT = WeightsEnum()


def _loaded(network, weights, pretrained=False):
    if pretrained or weights:
        network.load_state_dict({})
    return network
