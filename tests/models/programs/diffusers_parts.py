"""diffusers: denoisers and autoencoders are modules, schedulers do arithmetic, an average follows."""

import torch
from diffusers import AutoencoderKL, DDIMScheduler, DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from parts import carries_graph, frozen
from recorder import log


def main():
    unet = UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(32, 32),
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )
    log(f"unet: {frozen(unet)}, {hasattr(unet, 'conv_in')}, {hasattr(unet, 'conv_out')}")
    scheduler = DDPMScheduler(num_train_timesteps=10)
    image, noise = torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16)
    steps = torch.tensor([1, 2])
    noisy = scheduler.add_noise(image, noise, steps)
    log(f"noisy: {tuple(noisy.shape)}, {carries_graph(noisy)}, {carries_graph(scheduler.alphas_cumprod)}")
    out = unet(noisy, steps).sample
    log(
        f"out: {tuple(out.shape)}, {carries_graph(out)}, {carries_graph(unet(noisy, steps, return_dict=False)[0])}"
    )
    out.sum().backward()
    log(f"gradients: {all(one.grad is not None for one in unet.parameters())}")
    log(f"velocity: {carries_graph(scheduler.get_velocity(image, out, steps))}")
    for one in (scheduler, DDIMScheduler(num_train_timesteps=10)):
        one.set_timesteps(2)
        log(f"step: {carries_graph(one.step(out, one.timesteps[0], noisy).prev_sample)}")
    vae = AutoencoderKL(
        block_out_channels=(32,),
        down_block_types=("DownEncoderBlock2D",),
        up_block_types=("UpDecoderBlock2D",),
    )
    latents = vae.encode(image).latent_dist.sample()
    log(f"latents: {carries_graph(latents)}, {carries_graph(vae.encode(image).latent_dist.mode())}")
    log(f"decoded: {carries_graph(vae.decode(latents).sample)}")
    log(f"kl: {carries_graph(vae.encode(image).latent_dist.kl())}")
    mean = EMAModel(unet.parameters(), decay=0.5)
    log(f"average: {carries_graph(mean.shadow_params)}")
    mean.step(unet.parameters())
    log(f"after a step: {carries_graph(mean.shadow_params)}, {frozen(unet)}")
    optimizer = torch.optim.SGD(unet.parameters(), lr=0.1)
    schedule = get_cosine_schedule_with_warmup(optimizer, 1, 10)
    optimizer.step()
    schedule.step()
    log(f"schedule: {isinstance(schedule, torch.optim.lr_scheduler.LRScheduler)}")
