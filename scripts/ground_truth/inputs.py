"""Batches made from a seed, and the ways they get onto the device."""

import math

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

VOCABULARY = {"bert-base": 30522, "gpt2-small": 50257, "gpt2-medium": 50257}


class Images(Dataset):
    """Images that cost as much as JPEGs: blocks of frequencies are turned into pixels, cropped, scaled, jittered."""

    def __init__(self, seed, count=1 << 20):
        self.seed, self.count = seed, count
        steps = torch.arange(8.0)
        self.basis = torch.cos(math.pi / 8 * (steps[None, :] + 0.5) * steps[:, None]) / 2
        self.basis[0] /= math.sqrt(2)
        self.falloff = 300.0 / (1 + steps[:, None] + steps[None, :]) ** 2
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.deviation = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __len__(self):
        return self.count

    def decode(self, generator, blocks=40):
        frequencies = torch.randn(3, blocks, blocks, 8, 8, generator=generator) * self.falloff
        pixels = self.basis.T @ torch.round(frequencies) @ self.basis
        pixels = pixels.permute(0, 1, 3, 2, 4).reshape(3, 8 * blocks, 8 * blocks)
        return (pixels + 128).clamp(0, 255).to(torch.uint8)

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        image = self.decode(generator)
        draw = torch.rand(6, generator=generator).tolist()
        size = int(image.shape[1] * (0.6 + 0.4 * draw[0]))
        top, left = (int(share * (image.shape[1] - size)) for share in draw[1:3])
        crop = image[:, top:top + size, left:left + size].float().div(255)
        crop = F.interpolate(crop[None], size=(224, 224), mode="bilinear", antialias=True, align_corners=False)[0]
        if draw[3] < 0.5:
            crop = crop.flip(2)
        crop = ((crop - 0.5) * (0.8 + 0.4 * draw[4]) + 0.5 + 0.2 * (draw[5] - 0.5)).clamp(0, 1)
        return (crop - self.mean) / self.deviation, index % 1000


def ready_made(side, tokens, count=4):
    """A few batches in host memory, repeated, so that preparing them costs nothing."""
    generator = torch.Generator().manual_seed(side.seed)
    batches = []
    for _ in range(count):
        if tokens == 0:
            batch = [torch.randn(side.batch, 3, 224, 224, generator=generator),
                     torch.randint(1000, (side.batch,), generator=generator)]
        else:
            words = torch.randint(VOCABULARY[side.model], (side.batch, tokens + 1), generator=generator)
            targets = words[:, 1:]
            if side.model == "bert-base":  # 15 % of the words are asked for.
                asked = torch.rand(side.batch, tokens, generator=generator) < 0.15
                targets = words[:, :-1].masked_fill(~asked, -100)
            batch = [words[:, :-1].contiguous(), targets.contiguous()]
        batches.append([tensor.pin_memory() for tensor in batch] if side.pinned else batch)
    while True:
        yield from batches


def loaded(side):
    loader = DataLoader(Images(side.seed), side.batch, num_workers=side.workers, pin_memory=side.pinned,
                        persistent_workers=side.workers > 0, drop_last=True)
    while True:
        yield from loader


def host_batches(side, tokens):
    return loaded(side) if side.model == "image-loader" else ready_made(side, tokens)


class OnDemand:
    """Copies a batch when it is requested."""

    def __init__(self, batches, device, pinned):
        self.batches, self.device, self.pinned = batches, device, pinned

    def __next__(self):
        return [tensor.to(self.device, non_blocking=self.pinned) for tensor in next(self.batches)]


class Ahead:
    """Copies the next batch on a stream of its own while the current one is computed."""

    def __init__(self, batches, device):
        self.batches, self.device = batches, device
        self.stream = torch.cuda.Stream()
        self.copy_next()

    def copy_next(self):
        batch = next(self.batches)
        with torch.cuda.stream(self.stream):
            self.following = [tensor.to(self.device, non_blocking=True) for tensor in batch]

    def __next__(self):
        current = torch.cuda.current_stream()
        current.wait_stream(self.stream)
        batch = self.following
        for tensor in batch:
            tensor.record_stream(current)
        self.copy_next()
        return batch


def device_batches(side, tokens, device):
    batches = host_batches(side, tokens)
    return Ahead(batches, device) if side.prefetch else OnDemand(batches, device, side.pinned)
