"""An 18-layer residual network on images, in single precision."""

from .model import Grad, Module, Op, add, cross_entropy, elementwise, linear

SGEMM = "volta_sgemm_128x64_{}"
CONVOLUTION = "volta_scudnn_128x64_relu_interior_nn_v1"
DGRAD = "void cudnn::detail::dgrad_engine<float, 128, 6, 7, 3, 3, 5, false>(int, int, int, float const*, int, float const*, int, float*)"
WGRAD = "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int, float const*, int, float*, float const*)"
BATCH_NORM = "void cudnn::bn_{}_1C11_kernel_{}<float, float, 512, true, 1>(cudnnTensorStruct, float const*)"
CLAMP = "(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar)"
THRESHOLD = "(anonymous namespace)::threshold_kernel_impl<float>(at::TensorIteratorBase&, float, float)"


class Builder:
    def __init__(self, device, batch):
        self.device = device
        self.batch = batch

    def convolution(self, channels, out_channels, width, kernel, first=False):
        device, pixels = self.device, self.batch * width * width
        flops = 2 * pixels * out_channels * channels * kernel * kernel
        backward = [] if first else [device.compute(DGRAD, flops)]
        return Op(["aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution"],
                  [device.compute(CONVOLUTION, flops)],
                  [[self.batch, channels, width, width], [out_channels, channels, kernel, kernel]],
                  pixels * out_channels * 4,
                  Grad("ConvolutionBackward0",
                       [("aten::convolution_backward", [*backward, device.compute(WGRAD, flops)])]),
                  parameters=1, python_us=16)

    def batch_norm(self, channels, width):
        device, size = self.device, self.batch * channels * width * width * 4
        forward, backward = BATCH_NORM.format("fw_tr", "NCHW"), BATCH_NORM.format("bw", "new")
        return Op(["aten::batch_norm", "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm"],
                  [device.memory(forward, 3 * size)], [[self.batch, channels, width, width], [channels]], size,
                  Grad("CudnnBatchNormBackward0",
                       [("aten::cudnn_batch_norm_backward", [device.memory(backward, 5 * size)])]),
                  parameters=2, python_us=22)

    def relu(self, channels, width):
        device, size = self.device, self.batch * channels * width * width * 4
        return Op(["aten::relu_", "aten::clamp_min_"], [device.memory(elementwise(CLAMP, 2), 2 * size)],
                  [[self.batch, channels, width, width]], 0,
                  Grad("ReluBackward0",
                       [("aten::threshold_backward", [device.memory(elementwise(THRESHOLD, 3), 3 * size)])]))

    def block(self, index, channels, out_channels, width):
        shape = [self.batch, out_channels, width, width]
        size = self.batch * out_channels * width * width * 4
        children = [self.convolution(channels, out_channels, width, 3), self.batch_norm(out_channels, width),
                    self.relu(out_channels, width), self.convolution(out_channels, out_channels, width, 3),
                    self.batch_norm(out_channels, width)]
        if channels != out_channels:
            children += [self.convolution(channels, out_channels, width, 1), self.batch_norm(out_channels, width)]
        children += [add(self.device, shape, size), self.relu(out_channels, width)]
        return Module(f"BasicBlock_{index}", children)

    def pools(self):
        device = self.device
        pool = "void at::native::(anonymous namespace)::max_pool_{}_nchw<float, float>(int, float const*, long)"
        size = self.batch * 64 * 112 * 112 * 4
        return Op(["aten::max_pool2d", "aten::max_pool2d_with_indices"],
                  [device.memory(pool.format("forward"), 2 * size)], [[self.batch, 64, 112, 112]], size // 2,
                  Grad("MaxPool2DWithIndicesBackward0",
                       [("aten::max_pool2d_with_indices_backward",
                         [device.memory(pool.format("backward"), 3 * size)])]))


def resnet18(device, batch):
    build = Builder(device, batch)
    children = [build.convolution(3, 64, 112, 7, first=True), build.batch_norm(64, 112), build.relu(64, 112),
                build.pools()]
    sizes = [(64, 64, 56), (64, 64, 56), (64, 128, 28), (128, 128, 28), (128, 256, 14), (256, 256, 14),
             (256, 512, 7), (512, 512, 7)]
    children += [build.block(index, *size) for index, size in enumerate(sizes)]
    children.append(linear(device, batch, 512, 1000, SGEMM))
    return Module("ResNet_0", [*children, *cross_entropy(device, batch, 1000)])


PARAMETERS = 11_689_512
