"""A decoder as LLaMA's, for answering only: keys and values of earlier tokens are kept, products may be in narrow types."""

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 32000
LARGEST_FP8 = 448.0  # The largest number of float8_e4m3fn.


class Fp8Linear(nn.Module):
    """Weights are narrowed once. Inputs are narrowed at each call, by a scale for the whole tensor."""

    def __init__(self, wide):
        super().__init__()
        narrow, self.scale = self.narrowed(wide.weight.detach())
        self.weight = nn.Parameter(narrow, requires_grad=False)

    @staticmethod
    def narrowed(x):
        scale = x.abs().amax().float().clamp(min=1e-12) / LARGEST_FP8
        return (x / scale).clamp(-LARGEST_FP8, LARGEST_FP8).to(torch.float8_e4m3fn), scale

    def forward(self, x):
        narrow, scale = self.narrowed(x.flatten(0, -2))
        y = torch._scaled_mm(narrow, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=x.dtype,
                             use_fast_accum=True)
        return y.view(*x.shape[:-1], -1)


class Int8WeightLinear(nn.Module):
    """Weights in int8 with a scale per output; the product's kernel widens them."""

    def __init__(self, wide):
        super().__init__()
        weight = wide.weight.detach()
        scales = weight.abs().amax(1).float() / 127
        self.weight = nn.Parameter(torch.round(weight.float() / scales[:, None]).to(torch.int8), requires_grad=False)
        self.scales = nn.Parameter(scales.to(weight.dtype), requires_grad=False)

    def forward(self, x):
        y = torch._weight_int8pack_mm(x.flatten(0, -2), self.weight, self.scales)
        return y.view(*x.shape[:-1], -1)


NARROW = {"fp8": Fp8Linear, "int8_weights": Int8WeightLinear}


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


def rotated(x, cosines, sines):
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat((-second, first), -1) * sines


class CachedAttention(nn.Module):
    """Several heads of queries share one head of keys and values, which are kept for `tokens` tokens."""

    def __init__(self, width, heads, groups, samples, tokens):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.qkv = nn.Linear(width, (heads + 2 * groups) * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(samples, groups, tokens, self.size), persistent=False)

    def forward(self, x, cosines, sines, positions):
        samples, tokens, width = x.shape
        parts = self.qkv(x).view(samples, tokens, self.heads + 2 * self.groups, self.size).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.groups, self.groups), 1)
        q, k = rotated(q, cosines, sines), rotated(k, cosines, sines)
        self.keys.index_copy_(2, positions, k)
        self.values.index_copy_(2, positions, v)
        if tokens == 1:
            k, v = self.keys, self.values
        y = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(samples, tokens, width))


class DecoderBlock(nn.Module):
    def __init__(self, width, heads, groups, hidden, samples, tokens):
        super().__init__()
        self.attention = CachedAttention(width, heads, groups, samples, tokens)
        self.gate_and_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.norms = nn.ModuleList([RmsNorm(width), RmsNorm(width)])

    def forward(self, x, *place):
        x = x + self.attention(self.norms[0](x), *place)
        gate, up = self.gate_and_up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)

    def narrow(self, kind):
        self.gate_and_up, self.down = kind(self.gate_and_up), kind(self.down)
        self.attention.qkv, self.attention.out = kind(self.attention.qkv), kind(self.attention.out)


class Decoder(nn.Module):
    def __init__(self, width, depth, heads, groups, hidden, samples, tokens):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList([DecoderBlock(width, heads, groups, hidden, samples, tokens) for _ in range(depth)])
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        size = width // heads
        speeds = 500000.0 ** (-torch.arange(0, size, 2).float() / size)
        angles = torch.outer(torch.arange(tokens).float(), speeds).repeat(1, 2)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def forward(self, words, positions):
        """Scores of the token that follows the last one of each sample."""
        x = self.words(words)
        cosines, sines = self.cosines[positions], self.sines[positions]
        for block in self.blocks:
            x = block(x, cosines, sines, positions)
        return self.head(self.norm(x[:, -1]))


def build(name, samples, tokens):
    """LLaMA 3.2 1B's blocks, or a few blocks of LLaMA 3 8B, with a smaller vocabulary."""
    if name.startswith("llama-1b-"):
        return Decoder(2048, 16, 32, 8, 8192, samples, tokens)
    if name.startswith("llama-wide-"):
        return Decoder(4096, 8, 32, 8, 14336, samples, tokens)
    raise ValueError(f"no model is called '{name}'")
