"""A perceptron with one hidden layer on images: few ops, so that a trace of it is small."""

from .model import Module, cross_entropy, linear

PIXELS, HIDDEN, CLASSES = 3 * 224 * 224, 512, 1000
WEIGHTS = (PIXELS + 1) * HIDDEN + (HIDDEN + 1) * CLASSES
SGEMM = "volta_sgemm_128x64_{}"


def perceptron(device, batch):
    return Module("Perceptron_0", [
        Module("Linear_0", [linear(device, batch, PIXELS, HIDDEN, SGEMM)]),
        Module("Linear_1", [linear(device, batch, HIDDEN, CLASSES, SGEMM)]),
        Module("CrossEntropyLoss_0", cross_entropy(device, batch, CLASSES)),
    ])
