"""diffusers: denoisers and autoencoders are modules, schedulers mix in noise by plain arithmetic."""

from diffusers.models import *
from diffusers.pipelines import *
from diffusers.schedulers import *
