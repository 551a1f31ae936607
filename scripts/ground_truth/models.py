"""The models that are trained, written out so that torch is all they need. Sizes are those of the papers."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def run_block(block, x, recompute):
    return checkpoint(block, x, use_reentrant=False) if recompute and torch.is_grad_enabled() else block(x)


class Basic(nn.Module):
    """Two 3x3 convolutions around a shortcut (ResNet-18)."""
    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a shortcut (ResNet-50)."""
    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = shortcut(inputs, 4 * width, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def shortcut(inputs, outputs, stride):
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    def __init__(self, block, depths, recompute, classes=1000):
        super().__init__()
        self.recompute = recompute
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for stage, depth in enumerate(depths):
            for i in range(depth):
                blocks.append(block(inputs, 64 << stage, 2 if stage > 0 and i == 0 else 1))
                inputs = (64 << stage) * block.expansion
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = run_block(block, x, self.recompute)
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Attention(nn.Module):
    def __init__(self, width, heads, causal, dropout):
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        samples, tokens, width = x.shape
        q, k, v = self.qkv(x).view(samples, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(samples, tokens, width))


class TransformerBlock(nn.Module):
    """GPT-2 normalises before each part, BERT after it."""

    def __init__(self, width, heads, causal, norm_first, dropout):
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(width, heads, causal, dropout)
        gelu = nn.GELU(approximate="tanh" if norm_first else "none")
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norms[0](x)))
            return x + self.dropout(self.feed_forward(self.norms[1](x)))
        x = self.norms[0](x + self.dropout(self.attention(x)))
        return self.norms[1](x + self.dropout(self.feed_forward(x)))


class Transformer(nn.Module):
    """An encoder that guesses masked words (BERT) or a decoder (GPT-2). The head shares the embedding's weights."""

    def __init__(self, vocabulary, width, depth, heads, tokens, causal, recompute, dropout=0.1):
        super().__init__()
        self.causal, self.recompute = causal, recompute
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(tokens, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([TransformerBlock(width, heads, causal, causal, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.transform = (nn.Identity() if causal else
                          nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)))
        self.register_buffer("order", torch.arange(tokens), persistent=False)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, words):
        x = self.words(words) + self.positions(self.order[:words.shape[1]])
        x = self.dropout(x if self.causal else self.norm(x))
        for block in self.blocks:
            x = run_block(block, x, self.recompute)
        x = self.norm(x) if self.causal else self.transform(x)
        return F.linear(x, self.words.weight)


def build(name, recompute=False):
    if name == "resnet50":
        return ResNet(Bottleneck, (3, 4, 6, 3), recompute)
    if name == "image-loader":
        return ResNet(Basic, (2, 2, 2, 2), recompute)
    if name == "bert-base":
        return Transformer(30522, 768, 12, 12, 512, False, recompute)
    if name == "gpt2-small":
        return Transformer(50257, 768, 12, 12, 1024, True, recompute)
    if name == "gpt2-medium":
        return Transformer(50257, 1024, 24, 16, 1024, True, recompute)
    raise ValueError(f"no model is called '{name}'")
