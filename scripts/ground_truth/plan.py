"""The plan of the campaign: models, the sides of each comparison, and the transform of Foretrace that represents the change.

A side is one way to train one model, or to let it answer. Two sides that differ in one thing make a case. Sides are
shared: the same baseline is the "before" of many cases.
"""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    batch: int
    sequence: int  # Tokens per sample, or 0 for images; when decoding, those that were seen before.
    changes: tuple
    phase: str = "training"  # training, prefill (all tokens of the prompts at once) or decode (one token per sample)


@dataclasses.dataclass(frozen=True)
class Side:
    model: str
    batch: int
    precision: str = "amp"  # fp32, tf32 or amp (bf16); bf16, fp8 or int8_weights where nothing is trained
    optimizer: str = "foreach"  # AdamW: foreach or fused
    capturable: bool = False  # CUDA graphs need it.
    execution: str = "eager"  # eager, cuda_graphs or compile
    attention: str = "default"  # default, math or flash
    workers: int = 0
    pinned: bool = False  # Pinned memory and copies that do not block.
    prefetch: bool = False  # In addition, copies on a stream of their own, one batch ahead.
    checkpoint: bool = False
    channels_last: bool = False
    context: int = 0  # Tokens instead of the model's own number.
    seed: int = 1

    @property
    def key(self):
        """A short text for file names: the settings that differ from the defaults."""
        parts = [self.model, self.precision]
        if self.batch != MODELS[self.model].batch:
            parts.append(f"batch{self.batch}")
        if self.workers:
            parts.append(f"workers{self.workers}")
        if self.context:
            parts.append(f"context{self.context}")
        for field in ("optimizer", "execution", "attention"):
            value = getattr(self, field)
            if value not in ("foreach", "eager", "default"):
                parts.append(value)
        flags = ("capturable", "pinned", "prefetch", "checkpoint", "channels_last")
        return ".".join(parts + [flag for flag in flags if getattr(self, flag)])

    def as_json(self):
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(text):
        return Side(**json.loads(text))


@dataclasses.dataclass(frozen=True)
class Change:
    summary: str
    before: dict
    after: dict
    predict: tuple = None  # --with steps that model it; None: Foretrace has no such transform.
    memory: bool = False  # Worth a snapshot of the allocator.


_GRAPH = {"execution": "cuda_graphs"}
CHANGES = {
    "tf32": Change("fp32 to TF32", {"precision": "fp32"}, {"precision": "tf32"}),
    "amp": Change("TF32 to bf16 autocast", {"precision": "tf32"}, {"precision": "amp"}, ("amp",)),
    "amp_from_fp32": Change("fp32 to bf16 autocast", {"precision": "fp32"}, {"precision": "amp"}, ("amp",)),
    "fused_optimizer": Change("AdamW from foreach to fused", {}, {"optimizer": "fused"}, ("fused_optimizer",)),
    "cuda_graphs": Change("eager to one CUDA graph per step", {"capturable": True},
                          {"capturable": True, "execution": "cuda_graphs"}, ("cuda_graphs",)),
    "attention_flash": Change("attention from plain matrix products to the flash kernel", {"attention": "math"},
                              {"attention": "flash"}, memory=True),
    "channels_last": Change("images from NCHW to NHWC", {}, {"channels_last": True}, ("channels_last",)),
    "checkpoint": Change("activations recomputed block by block", {}, {"checkpoint": True},
                         ("recompute:policy=every",), memory=True),
    "batch_x2": Change("batch twice as large", {}, {"batch": 2.0}, ("batch_size:factor=2",), memory=True),
    "compile": Change("eager to torch.compile", {}, {"execution": "compile"}, ("torch_compile",)),
    "loader_workers": Change("loading in the process to 4 worker processes", {}, {"workers": 4}, ("loader:workers=4",)),
    "pinned": Change("pageable to pinned memory, copies that do not block", {"workers": 4},
                     {"workers": 4, "pinned": True}, ("pin_memory",)),
    "prefetch": Change("pageable copies to pinned ones on a stream of their own", {"workers": 4},
                       {"workers": 4, "pinned": True, "prefetch": True}, ("prefetch:buffers=2",)),
    "fp8": Change("bf16 to FP8 in the blocks' linear layers", {}, {"precision": "fp8"}, ("quantize:to=fp8",)),
    "fp8_graphs": Change("bf16 to FP8, both as a CUDA graph", _GRAPH, {**_GRAPH, "precision": "fp8"},
                         ("quantize:to=fp8",)),
    "fp8_and_graphs": Change("eager in bf16 to a CUDA graph in FP8", {}, {**_GRAPH, "precision": "fp8"},
                             ("quantize:to=fp8", "cuda_graphs")),
    "fp8_compiled": Change("bf16 to FP8, both compiled", {"execution": "compile"},
                           {"execution": "compile", "precision": "fp8"}, ("quantize:to=fp8",)),
    "int8_weights": Change("bf16 to weights in int8, both as a CUDA graph", _GRAPH,
                           {**_GRAPH, "precision": "int8_weights"}, ("quantize:to=int8_weights",)),
    "batch_x2_graphs": Change("batch twice as large, both as a CUDA graph", _GRAPH, {**_GRAPH, "batch": 2.0},
                              ("batch_size:factor=2",)),
    "context_x4": Change("four times the tokens seen before, both as a CUDA graph", _GRAPH,
                         {**_GRAPH, "context": 4096}),
}

_TRAINING = ("tf32", "amp", "amp_from_fp32", "fused_optimizer", "cuda_graphs")
_TEXT = _TRAINING + ("attention_flash", "checkpoint", "batch_x2", "compile")
_DECODE = ("cuda_graphs", "fp8_graphs", "fp8_and_graphs", "int8_weights", "batch_x2_graphs", "context_x4")

MODELS = {model.name: model for model in (
    Model("gpt2-small", 8, 512, _TEXT),
    Model("resnet50", 64, 0, _TRAINING + ("channels_last", "checkpoint", "batch_x2", "compile", "pinned", "prefetch")),
    Model("image-loader", 64, 0, ("loader_workers", "pinned", "prefetch")),
    Model("bert-base", 16, 256, _TEXT),
    Model("gpt2-medium", 4, 1024, _TEXT[:-1]),  # Compiling it takes minutes and shows nothing new.
    Model("llama-1b-prefill", 4, 1024, ("fp8", "batch_x2", "cuda_graphs", "compile", "fp8_compiled"), "prefill"),
    Model("llama-1b-decode", 16, 1024, _DECODE, "decode"),
    Model("llama-wide-prefill", 4, 1024, ("fp8", "batch_x2"), "prefill"),
    Model("llama-wide-decode", 16, 1024, _DECODE, "decode"),
)}
OVERHEAD_MODELS = ("gpt2-small", "resnet50")


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    change: str

    @property
    def id(self):
        return f"{self.model}/{self.change}"

    @property
    def predict(self):
        predict = CHANGES[self.change].predict
        return None if predict is None else list(predict)

    def _side(self, settings):
        batch = int(MODELS[self.model].batch * settings.get("batch", 1))
        settings = {name: value for name, value in settings.items() if name != "batch"}
        if self.model != "image-loader":
            settings.pop("workers", None)  # Only the batches of that model take work to prepare.
        if MODELS[self.model].phase != "training":
            settings.pop("capturable", None)  # A property of the optimizer.
            settings.setdefault("precision", "bf16")
        return Side(self.model, batch, **settings)

    @property
    def before(self):
        return self._side(CHANGES[self.change].before)

    @property
    def after(self):
        return self._side(CHANGES[self.change].after)


@dataclasses.dataclass(frozen=True)
class Overhead:
    """How much slower a model gets under the collector, by what is recorded."""
    model: str

    @property
    def id(self):
        return f"overhead/{self.model}"

    @property
    def side(self):
        return Side(self.model, MODELS[self.model].batch)


# Each level records what the previous level records, and more.
LEVELS = {
    "off": None,
    "kernels": {"record": "kernels"},
    "api": {"record": "kernels,api,sync"},
    "nvtx": {"record": "kernels,api,sync,nvtx"},
    "ops": {"record": "kernels,api,sync,nvtx", "ops": True},
    "memory": {"record": "kernels,api,sync,nvtx,memory,device_memory", "ops": True},
}


def items(only=()):
    """All work, in order. `only` holds MODEL, MODEL/CHANGE or overhead; an unknown one raises ValueError."""
    everything = []
    for model in MODELS.values():
        everything += [Case(model.name, change) for change in model.changes]
        if model.name in OVERHEAD_MODELS:
            everything.append(Overhead(model.name))
    for wanted in only:
        if not any(matches(item, wanted) for item in everything):
            raise ValueError(f"--only: must be one of {', '.join(MODELS)}, overhead, or a line of --list, got '{wanted}'")
    return [item for item in everything if not only or any(matches(item, wanted) for wanted in only)]


def matches(item, wanted):
    return item.id == wanted or item.id.startswith(wanted + "/")


def begun_from():
    """The keys of all sides that a prediction begins from."""
    return {item.before.key for item in items() if isinstance(item, Case)}


def sides(all_items):
    """The different sides of all cases, in order of first use."""
    found = {}
    for item in all_items:
        if isinstance(item, Case):
            for side in (item.before, item.after):
                found.setdefault(side.key, side)
    return found
