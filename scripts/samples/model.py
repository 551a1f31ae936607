"""A model as the profiler sees it: modules of ops, each with kernels forward and backward.

Kernel times follow a roofline: arithmetic at a fraction of the device's peak, or bytes at a fraction of its bandwidth.
"""

import dataclasses
import typing


@dataclasses.dataclass
class Kernel:
    name: str
    microseconds: float
    blocks: int = 80


@dataclasses.dataclass
class Grad:
    node: str
    ops: list  # Of (op name, [Kernel]); an op without kernels only costs the host.


@dataclasses.dataclass
class Op:
    names: list  # Nested, outermost first.
    kernels: list
    shapes: list
    output_bytes: int
    grad: typing.Optional[Grad] = None
    parameters: int = 0  # Number of gradients that its backward passes to AccumulateGrad.
    python_us: float = 9  # Python's work before the op.


@dataclasses.dataclass
class Module:
    name: str
    children: list


@dataclasses.dataclass
class Device:
    """The figures that the roofline needs. `properties` are those that a trace records about the device."""
    properties: dict
    flops: float
    bytes_per_second: float
    launch_ns: int
    gap_ns: int
    pageable: float  # GB/s
    pinned: float

    def compute(self, name, flops):
        return Kernel(name, max(2.6, flops / self.flops * 1e6 + 2.0), max(1, int(flops // 4e7)))

    def memory(self, name, size):
        return Kernel(name, max(1.4, size / self.bytes_per_second * 1e6 + 1.0), max(1, int(size // 65536)))


V100 = Device(
    {"id": 0, "name": "Tesla V100-SXM2-32GB", "totalGlobalMem": 34089730048, "computeMajor": 7, "computeMinor": 0,
     "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
     "sharedMemPerBlock": 49152, "numSms": 80},
    flops=9e12, bytes_per_second=720e9, launch_ns=2_400, gap_ns=1_300, pageable=6.2, pinned=12.1)

A100 = Device(
    {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42298834944, "computeMajor": 8, "computeMinor": 0,
     "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
     "sharedMemPerBlock": 49152, "numSms": 108},
    flops=85e12, bytes_per_second=1250e9, launch_ns=2_000, gap_ns=1_000, pageable=5.1, pinned=24.4)

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, at::detail::Array<char*, {}> >" \
              "(int, at::native::{}, at::detail::Array<char*, {}>)"


def elementwise(functor, arrays):
    return ELEMENTWISE.format(functor, arrays, functor, arrays)


SUM = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, " \
      "at::native::sum_functor<float, float, float> >, unsigned int, float, 4> >(at::native::ReduceOp<float>)"


def linear(device, rows, inner, outer, gemm):
    flops = 2 * rows * inner * outer
    return Op(
        ["aten::linear", "aten::addmm"], [device.compute(gemm.format("tn"), flops)],
        [[rows, inner], [outer, inner], [outer]], rows * outer * 4,
        Grad("AddmmBackward0", [
            ("aten::mm", [device.compute(gemm.format("nn"), flops)]),
            ("aten::mm", [device.compute(gemm.format("nt"), flops)]),
            ("aten::sum", [device.memory(SUM, rows * outer * 4)]),
        ]), parameters=2)


def add(device, shape, size):
    functor = "CUDAFunctor_add<float>"
    return Op(["aten::add"], [device.memory(elementwise(functor, 3), 3 * size)], [shape, shape, []], size,
              Grad("AddBackward0", []))


def cross_entropy(device, rows, classes):
    size = rows * classes * 4
    softmax = "void (anonymous namespace)::softmax_warp_{}<float, float, float, 10, true, false>(float*, float const*, int, int, int)"
    nll = "void at::native::(anonymous namespace)::nll_loss_{}_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float const*)"
    return [
        Op(["aten::cross_entropy_loss", "aten::log_softmax", "aten::_log_softmax"],
           [device.memory(softmax.format("forward"), 2 * size)], [[rows, classes], [rows]], size,
           Grad("LogSoftmaxBackward0", [("aten::_log_softmax_backward_data",
                                         [device.memory(softmax.format("backward"), 3 * size)])])),
        Op(["aten::nll_loss_nd", "aten::nll_loss", "aten::nll_loss_forward"],
           [device.memory(nll.format("forward"), rows * 8)], [[rows, classes], [rows]], 4,
           Grad("NllLossBackward0", [("aten::nll_loss_backward",
                                      [device.memory(nll.format("backward"), size)])]), python_us=4),
    ]
