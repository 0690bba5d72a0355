# SPDX-License-Identifier: MIT
"""Target figures of the benchmarks: (text, case, our row, the peer's row, figure, floor, goal). A row is (contender,
threads); several contenders, or threads None, mean the fastest of them. FIGURES of bench_table.py has the figures."""

AUTO, TWO, DIRECT, PEAK = ("auto", 1), ("auto", 2), ("cpu/direct", 1), ("fma-peak", 1)
PARTITIONED, WHOLE, SWAP = ("cpu/partitioned", 1), ("cpu/partitioned-whole", 1), ("cpu/partitioned-swap", 1)
MORPH, SIXTEEN_BIT = ("cpu/partitioned-morph", 1), "cpu/partitioned-16-bit"
ZITA, BANK, PARTITA = ("zita-convolver", 1), ("bank", 1), ("partita", 1)
DIRECTIONS = ("forward", "backward-data", "backward-weight")
ONEDNN = ("onednn", "onednn-winograd")  # the faster of the two
BEST = (ONEDNN, 1)
ENGINES = ("cpu/direct", "cpu/gemm", "cpu/winograd", "cpu/tiles", "cpu/depthwise", "cpu/overlap-save", "cpu/blocks")
# Cases that bench_table.py adds: the worst of several, and a share of all.
SLOWEST, SLOWEST_NETWORK = "slowest vgg-*-n{}-{}", "slowest zoo-*-{}"
WORST_CHOICE, CHOICES = "worst case", "all cases"
FLAT = ("flat", 1.6, 1.3)
CALLS = ("lfilter", "filtfilt", "resample-160-147", "resample-1-3", "decimate-8", "savgol", "hilbert", "stft-f32",
         "stft-f64", "istft", "gaussian-f32", "gaussian-uint8", "gaussian-volume", "uniform",
         "sobel", "laplace", "gradient", "image-15", "image-3", "lines")


def add(text, case, ours, theirs, figure, floor=None, goal=None):
    TARGETS.append((text, case, ours, theirs, figure, floor, goal))


def two_threads(case, floor=1.7):
    add("two threads against one", case, TWO, AUTO, "ratio", floor, 1.9)


def each_count(text, case, ours, theirs, *bounds):
    """A ratio with one thread and with two."""
    for n in (1, 2):
        add(f"{text}, {n} thread{'s' * (n > 1)}", case, (ours, n), (theirs, n), "ratio", *bounds)


def streams():
    for text, kind, ratio, *peak in (("real f32 stream", "f32", 15, 60, 85), ("cf32 stream, real taps", "cf32-real", 10, None, 80),
                                     ("cf32 stream, complex taps", "cf32-complex", 10, None, 80)):
        for case in (f"direct-{kind}-t{taps}" for taps in (16, 64, 256)):
            add(f"{text}, liquid-dsp", case, AUTO, ("liquid-dsp", 1), "ratio", ratio)
            add(f"{text}, direct sums, peak", case, DIRECT, PEAK, "peak", *([] if case == "direct-f32-t16" else peak))
    # The figures for any call, and for calls of whole blocks.
    for text, case, any_call, whole in (("long filter", "mono-b64-t480000", (6, 9), (7, 10)),
                                        ("long filter", "mono-b64-t65536", (5, 8), (5, 8)),
                                        ("long filter", "mono-b256-t480000", (6, 9), (6, 9)),
                                        ("dense matrix", "matrix-16x16-b64-t48000", (4.5, 8), (4.5, 8))):
        add(f"{text}, zita-convolver", case, PARTITIONED, ZITA, "ratio", *any_call)
        add("the same in whole blocks, zita-convolver", case, WHOLE, ZITA, "ratio", *whole)
        add(f"{text}, p99.9 over mean", case, PARTITIONED, None, *FLAT)
        add("the same in whole blocks, p99.9 over mean", case, WHOLE, None, *FLAT)
    for case, floor in (("zero-b32-t480000", 3), ("zero-b32-t2880000", 8)):
        add("a call of 32 frames", case, PARTITIONED, None, "call", floor)
        add("a call of 32 frames, p99.9 over mean", case, PARTITIONED, None, *FLAT)
    add("two threads against one", "matrix-16x16-b64-t48000", ("cpu/partitioned", 2), PARTITIONED, "ratio", 1.7, 1.9)
    for case in ("matrix-16x16-b64-t48000", "matrix-16x16-b256-t48000"):
        add("spectra in 16 bits against f32", case, (SIXTEEN_BIT, 1), PARTITIONED, "ratio", 1.5)
    for case in ("mono-b64-t480000", "matrix-16x16-b64-t48000"):
        add("extra cost while a swap fades", case, SWAP, WHOLE, "extra", 60, 30)
        add("p99.9 over mean while a swap fades", case, SWAP, None, *FLAT)
    add("a morph of 4 filters, 4 streams mixed", "mono-b64-t480000", MORPH, ("streams-mixed", 1), "ratio", 2.2, 3)
    add("a morph of 4 filters, p99.9 over mean", "mono-b64-t480000", MORPH, None, *FLAT)
    for taps in (4800, 48000):
        add("control and copies of a stream", f"mono-b64-t{taps}", ("control-and-copies", 1), PARTITIONED, "part", 8, 4)
    for slots in (64, 512, 4096):
        for case, floor in ((f"bank-own-{slots}", 1.5), (f"bank-shared-{slots}", 3)):
            add("a bank, as many streams", case, BANK, ("streams", 1), "ratio", floor)
            add("a bank, p99.9 over mean", case, BANK, None, "flat", 1.5)
    for case, peer, *bounds in (("f32-r64800k-1000", "textbook-fftw", 2.5, 4), ("cf32-r2400k-50", "streams", 10, 25),
                                ("cf32-r2400k-50", "liquid-nco-msresamp", 20, 50)):
        add(f"channels of one signal, {peer}", f"channels-{case}", ("channelizer", 1), (peer, 1), "ratio", *bounds)
    add("adaptive filter, SpeexDSP", "adaptive-t16384-b256", ("adaptive", 1), ("speexdsp", 1), "ratio", 4, 10)
    add("adaptive filter, p99.9 over mean", "adaptive-t16384-b256", ("adaptive", 1), None, *FLAT)


def signals():
    for taps in (64, 1024, 65536):
        add("whole signal, scipy-oaconvolve", f"long-10M-x-{taps}", AUTO, ("scipy-oaconvolve", 1), "ratio", 4, 8)
        two_threads(f"long-10M-x-{taps}")
    for case, peer, floor, goal, two in (("square-4M", "scipy-fftconvolve", 2.5, 5, 1.8),
                                         ("long-10M-x-1M", "scipy-oaconvolve", 4, 8, 1.8),
                                         ("lags-1000-of-2p26", "scipy-correlate", 25, None, 1.7)):
        add(f"whole signal, {peer}", case, AUTO, (peer, 1), "ratio", floor, goal)
        two_threads(case, two)
    add("memory against scipy's", "lags-1000-of-2p26", AUTO, ("scipy-correlate", 1), "smaller", 20)
    for peer in ("ffmpeg", "sox"):
        add(f"whole command, {peer}'s fastest", "convolve-10min-stereo-t4096", PARTITA, (peer, None), "ratio", 4)
    add("file against memory, both cores", "file-4G-t65536", ("partita", None), ("in-memory", None), "times", 1.3)
    add("file against cp", "file-4G-t65536", ("partita", None), ("cp", None), "times", 1.5)
    add("resident memory", "file-4G-t65536", ("partita", None), None, "memory", 128)
    for case in ("stream-f32-t64", "stream-f32-t65536", "signal-f32-t65536", "signal-cf64-t65536"):
        add("plan creation", f"plan-{case}", AUTO, None, "limit", 5)
    for kind in ("f32", "f64", "cf32", "cf64"):
        for size in ("10-x-3", "64-x-64", "1000-x-32"):
            add("one-shot call, numpy", f"small-{kind}-{size}", ("one-shot", 1), ("numpy", 1), "ratio", 0.5, 2)
            add("plan of a small signal", f"small-{kind}-{size}", ("plan", 1), None, "microseconds", 5)
    add("plan in all directions", "small-layer-3x3-64-56x56", ("plan", 1), None, "microseconds", None, 30)
    for case in ("f32-1M-x-1024", "cf32-1M-x-1024", "f32-500k-x-500k", "3x3-64-forward", "3x3-64-backward-data",
                 "3x3-64-backward-weight", "11x11-16-forward", "depthwise-31x31-forward"):
        add("search for samples that are not finite", f"nonfinite-{case}", ("call", 1), ("run", 1), "times", 1.05)


def networks():
    for network, *bounds in (("resnet18-224-train", 1.3, 2), ("resnet18-32-train", 1.2, 2), ("vgg11-64-train", 1.5, 2),
                             ("convnext-t-train", 1.6, 2.5), ("large-kernels-train", 8, 15), ("taps-513-train", 20, 60),
                             ("resnet50-infer-n1", 1.3, 2), ("resnet50-infer-n16", 1.3, 2),
                             ("mobilenet-infer-n1", 1.3, 2), ("mobilenet-infer-n16", 1.3, 2),
                             ("vgg-e-train", 2.5, 3.5), ("vgg-e-infer-n1", 2.5, 3.5), ("caffenet-train", 1.5, 2.5),
                             ("caffenet-infer-n16", 1.5, 2.5), ("resnet50-train", 1.5, 2.5),
                             ("convnext-t-infer-n16", 1.5, 2.5)):
        each_count("convolutions of a network, PyTorch", network, "auto", "torch", *bounds)
        two_threads(network)
        add("channels last, channels first", network, ("auto-last", 1), AUTO, "ratio", 0.95)


def python():
    for case, peer, *bounds in (("long-10M-x-1024", "scipy-oaconvolve", 6, 10), ("long-10M-x-65536", "scipy-oaconvolve", 6, 10),
                                ("lags-1000-of-2p24", "scipy-correlate", 25, 60), ("pairs-1000-of-256-x-2p22", "numpy-rfft", 8, 20),
                                ("templates-600-x-100-of-3-x-8640000", "scipy-oaconvolve", 20, 60)):
        add(f"from Python, {peer}", f"python-{case}", PARTITA, (peer, 1), "ratio", *bounds)
        add("from Python with two threads, the peer with one", f"python-{case}", ("partita", 2), (peer, 1), "ratio")
    for case in (f"python-small-{kind}-{size}" for kind in ("f64", "f32", "cf32") for size in ("10-x-3", "64-x-64", "1000-x-32")):
        add("one call from Python, scipy-convolve", case, PARTITA, ("scipy-convolve", 1), "ratio", 3, 10)
        add("one call from Python, numpy-convolve", case, PARTITA, ("numpy-convolve", 1), "ratio", None, 1)
    for case in CALLS:
        add("a call, SciPy", f"python-call-{case}", PARTITA, ("scipy", 1), "ratio", 2, 6)
    add("Stream.process beyond the call in C", "python-stream-b64-t48000", PARTITA, ("c-call", 1), "overhead", 5, 2)
    audio = ("tcn", "codec", "hifi-gan", "wav2vec2-position")
    for names, infer, step in ((("resnet18", "resnet50"), (1.35, 2), (1.25, 2)), (audio, (1.3, 2.5), (1.3, 2.5)),
                                (("resnet18-32", "u-net", "vgg11", "vgg-like"), (1.6, 2.5), (1.5, 2.5)),
                                (("mobilenet-v2", "efficientnet-b0"), (1.4, 2), (1.2, 2)),
                                (("convnext-t", "convnext-block"), (1.2, 1.8), (1.4, 2.5)),
                                (("replknet-31", "depthwise-31"), (16, 30), (26, 50)), (("small-layer",), (1,), (1,)),
                                (("conv1d-1024",), (20, 60), (20, 60))):
        for case in (f"network-{name}-{{}}{mode}" for name in names for mode in ("", "-last", "-autocast")):
            for kind, bounds in (("infer", infer), ("step", step)):
                bounds = (0.98, 1.3) if case.endswith("autocast") else bounds
                bounds = (3, 5) if case.endswith("31-{}-last") and kind == "infer" else bounds
                each_count("network, torch", case.format(kind), "partita", "torch", *bounds)
    for peer, *bounds in (("partita-f32", 1.25, 1.6), ("torch", 2, 5), ("torch-f32", 1.5, 2.5)):
        for case in (f"network-{name}-{kind}-bf16" for name in ("vgg-e", "resnet50", "convnext-t") for kind in ("infer", "step")):
            each_count(f"network in bf16, {peer}", case, "partita", peer, *bounds)
    for kind in ("step", "infer", "infer-autocast"):
        add("the worst of 25 networks, torch", SLOWEST_NETWORK.format(kind), PARTITA, ("torch", 1), "ratio", 0.98)
    for case in ("causal-conv1d-4-d8192-t1024-bf16", "causal-conv1d-4-d8192-t1024-f32"):
        each_count("short causal convolution, torch", case, "partita", "torch", 8, 15)
        each_count("the same, a compiled loop", case, "partita", "torch-compiled", 1.3, 2)
        add("the same, a copy of x", case, PARTITA, ("copy", 1), "peak", 70, 85)
    for case in (f"causal-update-4-d8192-b{batch}-{kind}" for batch in (1, 64) for kind in ("bf16", "f32")):
        add("one frame of it, a compiled sum", case, PARTITA, ("torch-compiled", 1), "ratio", 2, 5)
    for case, peer, *bounds in (("b1", "direct", 10, 20), ("b32", "direct"), ("b1", "torch-fft", 50, 200)):
        add(f"a frame of decoding, {peer}", f"decode-c4096-t8192-{case}", PARTITA, (peer, 1), "ratio", *bounds)
    add("the same, largest over mean", "decode-c4096-t8192-b1", PARTITA, None, "flat", None, 2)
    each_count("sequence model, torch", "sequence-hyena-step", "partita", "torch", 2.5, 5)
    for case in ("hyena-infer", "hyena-b8-step", "hyena-layer-step", "mamba-step", "wavenet-step", "codec-step"):
        add("sequence model, torch", f"sequence-{case}", PARTITA, ("torch", 1), "ratio")


def interpolate(low, high, r):
    """A bound at kernel size r, interpolated geometrically between the bounds at 11 and at 29."""
    return low * (high / low) ** ((r - 11) / 18)


def layers():
    pointwise = ("resnet-2-expand", "resnet-3-reduce", "resnet-4-expand", "resnet-5-reduce")  # of ResNet-50
    for direction in DIRECTIONS:
        for n in (1, 16):
            case = f"vgg-e-n{n}-{direction}"
            each_count("oneDNN's direct", case, "auto", "onednn", 1.8)
            each_count("oneDNN's best", case, "auto", ONEDNN, 1, 1.3)
            add("oneDNN's best, VGG-E's slowest layer", SLOWEST.format(n, direction), AUTO, BEST, "ratio", 1, 1.3)
        weight = direction == "backward-weight"
        for case, *bounds in (("caffenet-1", 1.15, 2), ("caffenet-2", 3, 4), ("caffenet-3", 1.15, 2), ("caffenet-4", 1.15, 2),
                              ("caffenet-5", 1.15, 2), ("dieleman-1", 3, 6), ("dieleman-2", 3, 6), ("dieleman-3", 4, 6),
                              ("dieleman-4", 3, 6), ("dieleman-5", 4, 6), ("thesis-4.6-r9", 9 if weight else 8, 20),
                              ("thesis-4.6-r15", 25 if weight else 15, 40), ("thesis-4.6-r31", 25 if weight else 20, 60),
                              *((f"thesis-4.5-r{r}", interpolate(2, 8, r), interpolate(4, 25, r)) for r in (11, 19, 29)),
                              ("depthwise-3", 2), ("depthwise-7", 2), ("depthwise-15", 4, 8),
                              ("depthwise-31", *((300, 500) if weight else (12, 25))), ("conv1d-1024", 20, 80),
                              *((case, 0.95, 1.1) for case in pointwise)):
            add("oneDNN's best", f"{case}-{direction}", AUTO, BEST, "ratio", *bounds)
        for r in (3, 7):
            add("direct sums, peak", f"depthwise-{r}-{direction}", AUTO, PEAK, "peak", None, 85)
        for layer in ("1.2", "2.2", "3.2", "4.2"):
            add("direct sums, peak", f"vgg-{layer}-n16-{direction}", DIRECT, PEAK, "peak", 60, 85)
        for case in ("vgg-e-n1", "vgg-e-n16", *(f"caffenet-{n}" for n in range(1, 6)), "dieleman-2", "dieleman-3", "dieleman-5",
                     *(f"thesis-4.6-r{r}" for r in (9, 15, 31)), "depthwise-3", "depthwise-7", "depthwise-31", *pointwise,
                     "conv1d-1024"):
            two_threads(f"{case}-{direction}")
    add("the planner's choice, our fastest engine", WORST_CHOICE, AUTO, (ENGINES, 1), "ratio", 1 / 1.15)
    add("the planner's choice within 5 % of our fastest engine", CHOICES, AUTO, None, "share", 95)


TARGETS = []
for group in (streams, signals, networks, python, layers):
    group()
