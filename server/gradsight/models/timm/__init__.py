"""timm: networks with a body (`forward_features`) and a head (`get_classifier`); factories, averages, losses."""

from timm.models import create_model
