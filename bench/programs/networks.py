# SPDX-License-Identifier: MIT
"""Networks of PyTorch whose convolutions are timed and tested: those of TABLE are timed in every mode; those of ZOO
come from torchvision and timm, with random weights. The functions are for calls of them."""
import copy
import sys

import rows
import torch
from torch import nn
from torch.nn.utils import parametrizations

# Errors of float32 through some 20 layers are below 1e-4; a wrong tap or channel changes results by more than this.
# Gradients differ more: a sample whose sign is lost in rounding passes ReLU or does not, with any library. Of one image,
# one such sample in VGG-11 changes all gradients before it by 0.001 to 0.008.
LARGEST_ERROR, LARGEST_ERROR_OF_GRADIENTS = 1e-3, 0.03
# Winograd's rounding errors are up to five times those of direct sums (docs/decisions/0014-winograd.md).
LARGEST_TIMES_TORCH = 10


def library_network(library, name):
    """A function that makes a network of torchvision or timm with random weights."""
    def make():
        if library == "timm":
            import timm
            return without_zeros(timm.create_model(name))
        import torchvision
        arguments = {"init_weights": True, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
        return without_zeros(torchvision.models.get_model(name, weights=None, **arguments))
    return make


def without_zeros(model):
    """The model, with random values in the parameters that are zeros, which would hide the layers before them."""
    for parameter in model.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.02)
    return model


def without_dropout(model):
    """The model, with nothing in it that chance switches off."""
    for layer in model.modules():
        if type(layer).__name__ in ("Dropout", "DropPath", "StochasticDepth"):
            layer.__dict__.update({name: 0.0 for name in ("p", "drop_prob") if name in layer.__dict__})
    return model


def training_step(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        x.grad = None
        model(x).float().square().mean().backward()
        optimizer.step()
    return step


def inference(model, x):
    def run():
        with torch.no_grad():
            return model(x)
    return run


def result_of(model, x, train):
    """What is compared: outputs, or the gradients of all weights in one vector."""
    model = copy.deepcopy(model)
    if not train:
        return inference(model, x)()
    model(x).float().square().mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def call_of(model, x, train):
    return (training_step if train else inference)(model, x)


def errors(case, models, x, train, expected, largest=None):
    """The distances of the contenders' results from the expected ones; None, with a message, if Partita's is too large."""
    found = {who: rows.distance(result_of(model, x, train), expected) for who, model in models.items()}
    largest = largest or (LARGEST_ERROR_OF_GRADIENTS if train else LARGEST_ERROR)
    if found["partita"] <= max(largest, LARGEST_TIMES_TORCH * found["torch"]):
        return found
    print(f"{case}: errors {found}", file=sys.stderr)
    return None


class Residual(nn.Module):
    """Two layers of ResNet-18 beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return (self.layers(x) + self.shortcut(x)).relu()


def resnet18_small():
    """ResNet-18 for images of 32 x 32: no stride in the first layer and no pooling after it."""
    blocks, inputs = [], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def two_layers(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    """A U-Net of four levels."""

    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        pairs = list(zip(widths, widths[1:], strict=False))
        self.first = two_layers(3, widths[0])
        self.down = nn.ModuleList(two_layers(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.join = nn.ModuleList(two_layers(2 * a, a) for a, b in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        levels = [self.first(x)]
        for layers in self.down:
            levels.append(layers(nn.functional.max_pool2d(levels[-1], 2)))
        y = levels.pop()
        for up, join in zip(self.up, self.join, strict=True):
            y = join(torch.cat([up(y), levels.pop()], 1))
        return self.last(y)


class ConvNextBlock(nn.Module):
    """A block of ConvNeXt-T's second stage; its products of channels are matrix products."""

    def __init__(self, channels=192):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide = nn.Linear(channels, 4 * channels)
        self.narrow = nn.Linear(4 * channels, channels)

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.narrow(nn.functional.gelu(self.wide(y))).permute(0, 3, 1, 2)


class Sum(nn.Module):
    """Layers and their input."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x)


def large_kernels():
    return nn.Sequential(*(layer for _ in range(2) for layer in (
        nn.Conv2d(64, 64, 31, padding=15, groups=64), nn.GELU(), nn.Conv2d(64, 64, 1), nn.GELU())))


def replknet(channels=64, blocks=3):
    """A stage of RepLKNet-31: depthwise layers of 31 x 31 taps between layers of one tap, and its stem."""
    def block():
        return (Sum(nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                    nn.Conv2d(channels, channels, 31, padding=15, groups=channels, bias=False),
                    nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels, 1, bias=False)),
                Sum(nn.BatchNorm2d(channels), nn.Conv2d(channels, 4 * channels, 1), nn.GELU(),
                    nn.Conv2d(4 * channels, channels, 1)))
    return nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                         *(layer for _ in range(blocks) for layer in block()))


def long_taps():
    return nn.Sequential(nn.Conv1d(16, 16, 1024, padding="same", groups=16), nn.GELU(), nn.Conv1d(16, 16, 1),
                         nn.GELU(), nn.Conv1d(16, 16, 1024, padding="same", groups=16))


def vgg_like():
    """Six layers of 3 x 3 taps as those of VGG, for images of 64 x 64."""
    layers, inputs = [], 3
    for outputs in (64, 128, 256):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1),
                   nn.ReLU(), nn.MaxPool2d(2)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


def tcn(channels=64, levels=8):
    """Causal dilated layers of three taps, two a level, as temporal convolutional networks have them."""
    def level(dilation):
        return Sum(*(layer for _ in range(2) for layer in (
            nn.ConstantPad1d((2 * dilation, 0), 0), nn.Conv1d(channels, channels, 3, dilation=dilation), nn.ReLU())))
    return nn.Sequential(nn.Conv1d(16, channels, 1), *(level(2 ** k) for k in range(levels)), nn.Conv1d(channels, 8, 1))


def codec(width=32):
    """A coder and decoder of audio: strided layers, and their transposes, as EnCodec has them."""
    def residual(channels):
        return Sum(nn.ELU(), nn.Conv1d(channels, channels // 2, 3, padding=1), nn.ELU(),
                   nn.Conv1d(channels // 2, channels, 1))
    down, up, channels = [], [], width
    for r in (2, 4, 5, 8):
        down += [residual(channels), nn.ELU(), nn.Conv1d(channels, 2 * channels, 2 * r, r, (r + 1) // 2)]
        up = [nn.ELU(), nn.ConvTranspose1d(2 * channels, channels, 2 * r, r, (r + 1) // 2, output_padding=r % 2),
              residual(channels), *up]
        channels *= 2
    return nn.Sequential(nn.Conv1d(1, width, 7, padding=3), *down, nn.Conv1d(channels, 128, 7, padding=3),
                         nn.Conv1d(128, channels, 7, padding=3), *up, nn.ELU(), nn.Conv1d(width, 1, 7, padding=3))


class Generator(nn.Module):
    """HiFi-GAN's generator of half its width: transposed layers, after each the mean of residual blocks of 3, 7 and
    11 taps with dilations 1, 3 and 5."""

    def __init__(self, width=256):
        super().__init__()
        self.first = nn.Conv1d(80, width, 7, padding=3)
        self.up, self.blocks = nn.ModuleList(), nn.ModuleList()
        for r, taps in ((8, 16), (8, 16), (2, 4), (2, 4)):
            self.up.append(nn.ConvTranspose1d(width, width // 2, taps, r, (taps - r) // 2))
            width //= 2
            self.blocks.append(nn.ModuleList(self.block(width, k) for k in (3, 7, 11)))
        self.last = nn.Conv1d(width, 1, 7, padding=3)

    @staticmethod
    def block(channels, taps):
        return nn.Sequential(*(Sum(
            nn.LeakyReLU(0.1), nn.Conv1d(channels, channels, taps, padding=d * (taps // 2), dilation=d),
            nn.LeakyReLU(0.1), nn.Conv1d(channels, channels, taps, padding=taps // 2)) for d in (1, 3, 5)))

    def forward(self, x):
        x = self.first(x)
        for up, blocks in zip(self.up, self.blocks, strict=True):
            x = up(nn.functional.leaky_relu(x, 0.1))
            x = sum(block(x) for block in blocks) / len(blocks)
        return self.last(nn.functional.leaky_relu(x, 0.1)).tanh()


def wav2vec2_position():
    """wav2vec 2.0's layer of positions: 128 taps in 16 groups, whose norm is a parameter of its own."""
    layer = nn.Conv1d(768, 768, 128, padding=64, groups=16)
    return nn.Sequential(parametrizations.weight_norm(layer, dim=2), nn.GELU())


def small_layer():
    """A layer that takes no longer than the call of its operator."""
    return nn.Conv2d(8, 8, 3, padding=1)


# Each with the shape of its input.
TABLE = {
    "resnet18": (library_network("torchvision", "resnet18"), (4, 3, 224, 224)),
    "resnet50": (library_network("torchvision", "resnet50"), (2, 3, 224, 224)),
    "resnet18-32": (resnet18_small, (32, 3, 32, 32)),
    "u-net": (UNet, (2, 3, 128, 128)),
    "vgg11": (library_network("torchvision", "vgg11"), (1, 3, 224, 224)),
    "vgg-like": (vgg_like, (8, 3, 64, 64)),
    "mobilenet-v2": (library_network("torchvision", "mobilenet_v2"), (4, 3, 224, 224)),
    "efficientnet-b0": (library_network("torchvision", "efficientnet_b0"), (2, 3, 224, 224)),
    "convnext-t": (library_network("torchvision", "convnext_tiny"), (1, 3, 224, 224)),
    "convnext-block": (ConvNextBlock, (8, 192, 28, 28)),
    "replknet-31": (replknet, (1, 3, 112, 112)),
    "depthwise-31": (large_kernels, (4, 64, 56, 56)),
    "tcn": (tcn, (4, 16, 2048)),
    "codec": (codec, (1, 1, 16000)),
    "hifi-gan": (Generator, (1, 80, 32)),
    "wav2vec2-position": (wav2vec2_position, (1, 768, 499)),
    "conv1d-1024": (long_taps, (4, 16, 16384)),
    "small-layer": (small_layer, (1, 8, 16, 16)),
}

# Names in torchvision and timm.
ZOO = {
    "torchvision": ("alexnet", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d", "densenet121", "googlenet",
                    "inception_v3", "squeezenet1_1", "shufflenet_v2_x1_0", "mobilenet_v2", "mobilenet_v3_small",
                    "mnasnet1_0", "efficientnet_b0", "regnet_y_400mf", "convnext_tiny", "vit_b_16"),
    "timm": ("repvgg_a0", "convmixer_768_32", "mixnet_s", "ghostnet_100", "hrnet_w18_small", "dla34",
             "tf_efficientnetv2_b0", "edgenext_small"),
}
