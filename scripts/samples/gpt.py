"""A small decoder-only language model."""

from .model import Grad, Module, Op, add, cross_entropy, elementwise, linear

GEMM = "ampere_sgemm_128x64_{}"
TENSOR_GEMM = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x128_32x3_{0}_align4>" \
              "(cutlass_80_tensorop_s1688gemm_256x128_32x3_{0}_align4::Params)"
LAYER_NORM = "void at::native::(anonymous namespace)::{}<float, float>(int, float, float const*, float const*, float const*, float*)"
ATTENTION = "fmha_cutlass{}_f32_aligned_64x64_{}_sm80(PyTorchMemEffAttention::Attention{}<float, cutlass::arch::Sm80>::Params)"
GATHER = "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<float>)"
EMBEDDING_BACKWARD = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>(long const*, float const*, float*)"


class Builder:
    def __init__(self, device, batch, length, width, gemm):
        self.device = device
        self.batch, self.length, self.width, self.gemm = batch, length, width, gemm
        self.rows = batch * length
        self.size = self.rows * width * 4
        self.norms = 0
        self.linears = 0

    def layer_norm(self):
        device = self.device
        self.norms += 1
        return Module(f"LayerNorm_{self.norms - 1}", [
            Op(["aten::layer_norm", "aten::native_layer_norm"],
               [device.memory(LAYER_NORM.format("vectorized_layer_norm_kernel"), 2 * self.size)],
               [[self.batch, self.length, self.width], [], [self.width], [self.width], []], self.size,
               Grad("NativeLayerNormBackward0", [("aten::native_layer_norm_backward", [
                   device.memory(LAYER_NORM.format("layer_norm_grad_input_kernel"), 3 * self.size),
                   device.memory(LAYER_NORM.format("GammaBetaBackwardCUDAKernel"), 2 * self.size)])]),
               parameters=2, python_us=7)])

    def linear(self, inner, outer):
        self.linears += 1
        return Module(f"Linear_{self.linears - 1}", [linear(self.device, self.rows, inner, outer, self.gemm)])

    def attention(self):
        device = self.device
        flops = 2 * 2 * self.batch * self.length * self.length * self.width * 2  # Runs at half the speed of a product.
        shape = [self.batch, 8, self.length, self.width // 8]
        names = ["aten::scaled_dot_product_attention", "aten::_scaled_dot_product_efficient_attention",
                 "aten::_efficient_attention_forward"]
        return Op(names, [device.compute(ATTENTION.format("F", "rf", "Kernel"), flops)], [shape, shape, shape],
                  self.size, Grad("ScaledDotProductEfficientAttentionBackward0", [
                      ("aten::_scaled_dot_product_efficient_attention_backward",
                       [device.compute(ATTENTION.format("B", "k64", "BackwardKernel"), 2.5 * flops)])]),
                  python_us=18)

    def gelu(self):
        size = 4 * self.size
        forward, backward = "GeluCUDAKernelImpl", "GeluBackwardCUDAKernelImpl"
        return Op(["aten::gelu"], [self.device.memory(elementwise(forward, 2), 2 * size)],
                  [[self.batch, self.length, 4 * self.width]], size,
                  Grad("GeluBackward0", [("aten::gelu_backward",
                                          [self.device.memory(elementwise(backward, 3), 3 * size)])]))

    def residual(self):
        return add(self.device, [self.batch, self.length, self.width], self.size)

    def block(self, index):
        attention = Module(f"CausalSelfAttention_{index}",
                           [self.linear(self.width, 3 * self.width), self.attention(),
                            self.linear(self.width, self.width)])
        mlp = Module(f"MLP_{index}", [self.linear(self.width, 4 * self.width), self.gelu(),
                                      self.linear(4 * self.width, self.width)])
        return Module(f"Block_{index}", [self.layer_norm(), attention, self.residual(), self.layer_norm(), mlp,
                                         self.residual()])

    def embedding(self, words):
        return Module("Embedding_0", [
            Op(["aten::embedding", "aten::index_select"], [self.device.memory(GATHER, 2 * self.size)],
               [[words, self.width], [self.batch, self.length]], self.size,
               Grad("EmbeddingBackward0", [("aten::embedding_dense_backward",
                                            [self.device.memory(EMBEDDING_BACKWARD, 2 * self.size)])]),
               parameters=1)])


def gpt(device, layers, batch, length, width, words, gemm):
    build = Builder(device, batch, length, width, gemm)
    children = [build.embedding(words), *[build.block(index) for index in range(layers)], build.layer_norm(),
                build.linear(width, words), *cross_entropy(device, build.rows, words)]
    return Module("GPT_0", children)


def parameter_count(layers, width, words):
    return layers * 12 * width * width + words * width * 2
