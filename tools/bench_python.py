# SPDX-License-Identifier: MIT
"""The part of tools/bench-table.py about the package for Python: required figures and goals."""

OURS, TWO = ("partita", 1), ("partita", 2)

# As TARGETS of bench-table.py.
TARGETS = []
for case, peer, required, goal in (("python-long-10M-x-1024", "scipy-oaconvolve", 6, 10),
                                   ("python-long-10M-x-65536", "scipy-oaconvolve", 6, 10),
                                   ("python-lags-1000-of-2p24", "scipy-correlate", 25, 60)):
    TARGETS.append((f"from Python, {peer}", case, OURS, (peer, 1), "ratio", required, goal))
    TARGETS.append(("the same, two threads", case, TWO, (peer, 1), "ratio", None, None))
for kind in ("f64", "f32", "cf32"):
    for size in ("10-x-3", "64-x-64", "1000-x-32"):
        case = f"python-small-{kind}-{size}"
        TARGETS.append(("one call from Python, scipy-convolve", case, OURS, ("scipy-convolve", 1), "ratio", 3, 10))
        TARGETS.append(("one call from Python, numpy-convolve", case, OURS, ("numpy-convolve", 1), "ratio", None, 1))
TARGETS.append(("Stream.process beyond the call in C", "python-stream-b64-t48000", OURS, ("c-call", 1), "overhead", 5, 2))
for network, required, goal in (("convnext-block", 1.5, 2.5), ("depthwise-31", 4, 10), ("conv1d-1024", 20, 60),
                                ("vgg-like", 1.3, 2), ("resnet18-32", None, None), ("small-layer", None, None)):
    for kind in ("train", "infer", "infer-last"):
        # Matrix products, which both leave to PyTorch, are a larger part of the inference of the block.
        floors = (1.3, 2) if network == "convnext-block" and kind != "train" else (required, goal)
        for threads in (1, 2):
            TARGETS.append((f"network, torch, {threads} thread{'s' * (threads > 1)}", f"network-{network}-{kind}",
                            ("partita", threads), ("torch", threads), "ratio", *floors))



def slower_table(ratios):
    """For python/README.md: the rows in which the peer is faster. `ratios`: its time by ours, by lines of TARGETS."""
    lines = ["| case | peer | threads | the peer is faster by |", "|---|---|---|---|"]
    for (_, case, (_, threads), (peer, _), _, _, _), ratio in ratios:
        if ratio < 1:
            lines.append(f"| `{case}` | {peer} | {threads} | {1 / ratio:.2f}x |")
    return "\n".join(lines if len(lines) > 2 else ["There is none."])


SIGNAL_HEAD = """Arrays are those of NumPy, results are allocated by each function. An item is a sample of the signal, in
`python-small-*` and `python-stream-*` a call. `c-call` is the library's own time within the calls of `Stream.process`.
"""
NETWORKS_HEAD = """An item is a training step (forward, both gradients, the update of the weights) or a call without
gradients, on the whole batch. Both contenders compute everything but convolutions by PyTorch. In `*-last` the tensors
lie channels last. The error is that of the outputs or of the gradients of all weights.
"""
