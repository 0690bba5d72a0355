# SPDX-License-Identifier: MIT
"""What the tests of partita.nn share: tolerances, and comparison with PyTorch in double precision."""
import torch

# Relative L2 error of a whole result. The planner admits engines up to 2e-6 in f32 (plan.h, error_budget; Winograd
# comes near it), f64 has 29 bits more. That is the mean over long results; twice it bounds short ones. Types of two
# bytes add the rounding of the result, half a unit of 11 or 8 bits.
TOLERANCE = {
    torch.float32: 4e-6,
    torch.float64: 4e-6 * 2.0**-29,
    torch.complex64: 4e-6,
    torch.complex128: 4e-6 * 2.0**-29,
    torch.float16: 4e-6 + 2.0**-11,
    torch.bfloat16: 4e-6 + 2.0**-8,
}


def double(t):
    """The same values in double precision, as a new leaf."""
    if t is None:
        return None
    wide = torch.complex128 if t.is_complex() else torch.float64
    return t.detach().to(wide).requires_grad_(t.requires_grad)


def require_close(result, expected, times=1, what=""):
    """The L2 distance is within so many times the tolerance of the result's type."""
    assert result.shape == expected.shape, (what, result.shape, expected.shape)
    distance = torch.linalg.vector_norm(result.detach().to(expected.dtype) - expected.detach())
    bound = times * TOLERANCE[result.dtype] * torch.linalg.vector_norm(expected.detach())
    assert distance <= bound, (what, float(distance), float(bound))


def random(seed, *shape, dtype=torch.float32, grad=True):
    """Normal values that depend on the seed and the shape alone."""
    generator = torch.Generator().manual_seed(seed)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(*shape, generator=generator, dtype=wide).to(dtype).requires_grad_(grad)


def require_same_layer(ours, theirs, x, w, b, times=1, **layer):
    """Results and gradients of a function of ours are those of PyTorch's in double precision."""
    wide = [double(t) for t in (x, w, b)]
    y, expected = ours(x, w, b, **layer), theirs(*wide, **layer)
    assert y.dtype == x.dtype
    require_close(y, expected, times, "y")
    g = random(99, *expected.shape, dtype=y.dtype, grad=False)
    leaves = [(t, e) for t, e in zip((x, w, b), wide) if t is not None and t.requires_grad]
    gradients = torch.autograd.grad(y, [t for t, _ in leaves], g)
    wanted = torch.autograd.grad(expected, [e for _, e in leaves], double(g))
    for i, (gradient, want) in enumerate(zip(gradients, wanted)):
        require_close(gradient, want, times, f"gradient {i}")


def forward_derivative(function, x, w):
    """The forward-mode derivative of a function of x and w with respect to w, in the direction of w."""
    with torch.autograd.forward_ad.dual_level():
        return torch.autograd.forward_ad.unpack_dual(function(x, torch.autograd.forward_ad.make_dual(w, w))).tangent
