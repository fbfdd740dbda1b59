"""A pipeline of diffusers that shows what a network can do clears nothing, and leaves no doubt about who does."""

from __future__ import annotations

from tests.models.checking import check

PROGRAM = """
from accelerate import Accelerator
from diffusers import StableDiffusionPipeline, UNet2DConditionModel

def show(unet, name):
    pipeline = StableDiffusionPipeline.from_pretrained(name, unet=unet)
    pipeline = pipeline.to("cpu")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline("a picture", num_inference_steps=4).images

def main(name, loader):
    accelerator = Accelerator()
    unet = UNet2DConditionModel.from_pretrained(name, subfolder="unet")
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    unet, optimizer = accelerator.prepare(unet, optimizer)
    for step, batch in enumerate(loader):
        with accelerator.accumulate(unet):
            predicted = unet(batch["noisy"], batch["step"]).sample
            loss = F.mse_loss(predicted, batch["noise"])
            accelerator.backward(loss){mark}
            optimizer.step()
            {clear}
        if step % 500 == 0:
            show(accelerator.unwrap_model(unet), name)
"""


def test_gradients_are_never_cleared_beside_a_pipeline_that_shows_the_network() -> None:
    check(PROGRAM.format(mark="  # GS501", clear="pass"))


def test_gradients_that_are_cleared_beside_it_are_right() -> None:
    check(PROGRAM.format(mark="", clear="optimizer.zero_grad()"))
