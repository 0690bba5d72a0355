# SPDX-License-Identifier: MIT
"""partita.nn.replace_: layers choose by measured times, say so, remember it, and are given back as they were."""
import copy
import pickle

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from nn_checks import random, require_close  # noqa: E402
from torch.nn.utils import parametrizations, parametrize  # noqa: E402

import partita.nn as ours  # noqa: E402
from partita.nn import _measure  # noqa: E402
from partita.nn.testing import dispatch_mode  # noqa: E402


class Times:
    """In the place of a clock: Partita's time of each call over torch's, by the number of taps along the last axis."""

    def __init__(self):
        self.ratios, self.model, self.measured = {}, 0.5, []

    def decide(self, layer, kind, *operands):
        self.taps = kind["taps"][-1]
        try:
            return self.original(layer, kind, *operands)
        finally:
            self.taps = None

    def compare(self, calls, margin=1.0, seconds=0.5):
        taps = self.taps
        self.measured.append(taps or "model")
        for call in calls:
            assert call() > 0
        ratio = self.ratios.get(taps, 0.5) if taps else self.model
        return _measure.Decision(ratio < margin, 100.0, 100 * ratio)


@pytest.fixture
def times(monkeypatch, tmp_path):
    found = Times()
    found.original, found.taps = _measure.decide, None
    monkeypatch.setattr(_measure, "decide", found.decide)
    monkeypatch.setattr(_measure, "compare", found.compare)
    monkeypatch.setattr("partita.nn._replace.compare", found.compare)
    monkeypatch.setattr(_measure, "_path", lambda: tmp_path / "partita" / "layers.jsonl")
    monkeypatch.setattr(_measure.memory, "known", None)
    return found


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 5, padding=2),
        torch.nn.Dropout(0.5), torch.nn.Conv2d(8, 8, 5, padding=2), torch.nn.ConvTranspose2d(8, 2, 2, stride=2))


X = random(1, 2, 3, 12, 12, grad=False)


def test_the_faster_library_computes(times):
    times.ratios = {3: 0.93, 5: 0.9, 2: 1.2}
    model = network()
    report = ours.replace_(model, X, train=False)
    assert times.measured == [3, 5, 2, "model"]  # both layers of 5 x 5 taps are of one kind
    assert report == ["3", "5"] and repr(ours.replace_(model, X, train=False)) == repr(report)
    table = report.to_dict()
    assert [(row["layer"], row["choice"]) for row in table["layers"]] == [
        ("0", "torch"), ("3", "partita"), ("5", "partita"), ("6", "torch")]
    row = table["layers"][1]
    assert (row["torch_us"], row["partita_us"], row["call"]["input"]) == (100, 90, [2, 8, 12, 12])
    assert row["reason"] == "1.11 times torch's speed" and table["model"]["choice"] == "partita"
    assert [line.split()[0] for line in repr(report).splitlines()] == ["layer", "0", "3", "5", "6", "model"]
    assert repr(model[3]) == "Conv2d(8, 8, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2), partita)"
    assert repr(model[0]).endswith("padding=(1, 1), partita: torch is faster)")
    model.eval()
    stock = copy.deepcopy(model)
    assert ours.restore_(stock) == ["0", "3", "5", "6"]
    forced = copy.deepcopy(stock)
    ours.replace_(forced, where=lambda layer: layer.kernel_size == (5, 5))
    with torch.no_grad():
        assert torch.equal(model(X), forced(X))
        require_close(model(X), stock(X).double(), 8)
    assert repr(stock) == repr(network().eval())


def test_the_first_call_has_the_bits_of_all(times):
    model = network().eval()
    report = ours.replace_(model)
    assert report == ["0", "3", "5", "6"] and "no call has been measured" in repr(report)
    for ratio in (2.0, 0.5):
        times.ratios = dict.fromkeys((2, 3, 5), ratio)
        _measure.memory.known = {}
        for layer in ours.replace_(model):
            model[int(layer)]._choices.__init__()
        with torch.no_grad():
            assert torch.equal(model(X), model(X))
    assert times.measured == [3, 5, 2] * 2
    assert "0.50 times torch's speed" not in repr(report) and "2.00 times torch's speed" in repr(report)


def test_kinds_are_measured_once(times):
    layer = torch.nn.Conv2d(8, 8, 3)
    ours.replace_(layer)

    def kinds(shape, dtype=torch.float32, grad=True, layout=torch.contiguous_format):
        before = len(times.measured)
        layer.to(dtype)
        with torch.set_grad_enabled(grad):
            for _ in range(2):
                layer(torch.ones(shape, dtype=dtype).to(memory_format=layout))
        return len(times.measured) - before
    assert kinds((1, 8, 32, 32)) == 1 and kinds((1, 8, 32, 33)) == 0 and kinds((1, 8, 32, 36)) == 1
    assert kinds((1, 8, 32, 32), grad=False) == 1 and kinds((1, 8, 32, 32), torch.float64) == 1
    assert kinds((1, 8, 32, 32), torch.bfloat16) == 1 and kinds((8, 32, 32)) == 1
    assert kinds((1, 8, 32, 32), layout=torch.channels_last) == 1 and kinds((0, 8, 32, 32)) == 0
    with torch.autocast("cpu", torch.bfloat16):
        assert kinds((1, 8, 32, 32)) == 1
    layer.eval()
    assert kinds((1, 8, 32, 32)) == 1  # forward alone
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert kinds((1, 8, 32, 32)) == 1
    finally:
        torch.set_num_threads(threads)
    times.measured.clear()
    ours.replace_(torch.nn.Conv2d(8, 8, 3), torch.ones(1, 8, 32, 32))
    assert times.measured == ["model"]
    _measure.memory.known = None  # a new process, with the file of the first
    ours.replace_(torch.nn.Conv2d(8, 8, 3), torch.ones(1, 8, 32, 32))
    assert times.measured == ["model"]
    _measure._path().write_text("[1]\n" + _measure._path().read_text())
    _measure.memory.known = None
    ours.replace_(torch.nn.Conv2d(8, 8, 3), torch.ones(1, 8, 32, 32))
    assert times.measured == ["model", 3, "model"]


def test_a_whole_model_that_is_not_faster_is_given_back(times):
    times.model = 1.0
    model = network()
    for measured in ([3, 5, 2, "model"], []):
        times.measured.clear()
        report = ours.replace_(model, X)
        assert report == [] and times.measured == measured and report.to_dict()["model"]["choice"] == "torch"
        assert "the whole model is not faster" in repr(report)
    torch.manual_seed(1)
    y = model(X)
    ours.restore_(model)
    torch.manual_seed(1)
    assert torch.equal(model(X), y) and times.measured == []


def test_an_example_leaves_no_traces(times):
    model = network()
    state = copy.deepcopy(model.state_dict())
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    ours.replace_(model, (X,))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    ours.replace_(model, {"input": X}, train=False)
    with pytest.raises(TypeError, match="where="):
        ours.replace_(model, lambda layer: True)
    with pytest.raises(ValueError, match="leave out example_input"):
        ours.replace_(model, X, where=lambda layer: True)


class Rare(torch.nn.Module):
    """A layer that the first call leaves out."""

    def __init__(self):
        super().__init__()
        self.layer, self.rare, self.n_calls = torch.nn.Conv2d(3, 3, 3), torch.nn.Conv2d(3, 3, 5), 0

    def forward(self, x):
        self.n_calls += 1
        return self.layer(x) if self.n_calls == 1 else self.rare(self.layer(x))


@pytest.mark.parametrize("call, error, text", [
    (lambda: ours.replace_(42), TypeError, "model is of type int: a torch.nn.Module is needed"),
    (lambda: ours.replace_(torch.nn.Conv2d), TypeError, "model is the class Conv2d: a torch.nn.Module is needed"),
    (lambda: ours.restore_([network()]), TypeError, "model is of type list"),
    (lambda: ours.replace_(network(), where="0"), TypeError, "where is of type str: a function of a layer"),
    (lambda: ours.restore_(network(), ["0"]), TypeError, "where is of type list: a function of a layer"),
    (lambda: ours.replace_(network(), train=True), ValueError, "give example_input"),
    (lambda: ours.forget(3), TypeError, "model is of type int: a module, or a tensor of taps, is needed"),
])
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_in_inference_mode(times):
    training, evaluated = network(), network().eval()
    with torch.inference_mode():
        reports = ours.replace_(training, X), ours.replace_(evaluated, X)
    for report, trained in zip(reports, (True, False)):
        assert report and all(row["call"]["training"] == trained for row in report.to_dict()["layers"])


def test_a_model_without_convolutions():
    report = ours.replace_(torch.nn.Linear(3, 2))
    assert report == [] and "no layer is a convolution of torch.nn" in repr(report)
    assert "no layer" not in repr(ours.replace_(network()))


def test_layers_that_an_example_does_not_reach(times):
    model = Rare()
    assert ours.replace_(model, X, train=False) == ["layer", "rare"] and times.measured == [3, "model", 5]


def test_a_model_that_fails_is_left_as_it_was(times):
    model = network()
    ours.replace_(model[3:4])
    with pytest.raises(RuntimeError):
        ours.replace_(model, random(1, 2, 4, 12, 12))
    assert ours.restore_(model) == ["3"]


def test_observed_calls_are_not_measured(times):
    large, small = torch.nn.Conv2d(2, 2, 7), torch.nn.Conv2d(2, 2, 3)
    model = torch.nn.Sequential(large, small).eval()
    stock, x = copy.deepcopy(model), random(2, 1, 2, 12, 12, grad=False)
    ours.replace_(model)
    with torch.no_grad():
        expected = stock(x)
        calls = [torch.compile(model, backend="eager", fullgraph=True), torch.jit.trace(model, x, check_trace=False),
                 torch.export.export(model, (x,)).module(), lambda x: torch.vmap(model)(x[None])[0]]
        for call in calls:
            torch.testing.assert_close(call(x), expected)
        with dispatch_mode() as mode:
            model(x)
        assert mode.counts()["native"] == {"partita.conv": 1, "aten.convolution": 1}  # large alone by its own class
        torch.use_deterministic_algorithms(True)
        try:
            torch.testing.assert_close(model(x), expected)
        finally:
            torch.use_deterministic_algorithms(False)
        torch.func.grad(lambda x: model(x).sum())(x)
    assert not times.measured and not large._choices.rows


@pytest.mark.parametrize("reentrant", (False, True))
def test_checkpoints(times, reentrant):
    model = network()[:4].eval()
    stock, x = copy.deepcopy(model).double(), random(1, 2, 3, 12, 12)
    ours.replace_(model)
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    wide = x.detach().double().requires_grad_()
    stock(wide).sum().backward()
    require_close(x.grad, wide.grad, 8)
    require_close(model[0].weight.grad, stock[0].weight.grad, 8)


class Plain(torch.nn.Conv2d):
    """A subclass that computes as its base does."""


class Doubled(torch.nn.Conv2d):
    def forward(self, input):
        return 2 * super().forward(input)


LAYERS = {
    "parametrized": lambda: parametrizations.weight_norm(torch.nn.Conv1d(4, 4, 3)),
    "spectral": lambda: parametrizations.spectral_norm(torch.nn.Conv2d(4, 4, 3)).eval(),
    "subclass": lambda: Plain(4, 4, 3),
    "parametrized-subclass": lambda: parametrizations.weight_norm(Plain(4, 4, 3)),
    "transposed": lambda: parametrizations.weight_norm(torch.nn.ConvTranspose1d(4, 4, 3, stride=2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_other_classes(times, name):
    layer = LAYERS[name]()
    kind, names, copied = type(layer), list(vars(layer)), copy.deepcopy(layer)
    x = random(1, 2, 4, *(9,) * len(layer.kernel_size), grad=False)
    assert ours.replace_(layer, x, train=True) == [""] and ours.replace_(layer) == [""]
    assert type(copied) is kind and isinstance(layer, ours.modules.Replaced) and repr(layer) != repr(copied)
    assert list(layer.state_dict()) == list(copied.state_dict())
    require_close(layer(x), copied.double()(x.double()), 2)
    again = copy.deepcopy(layer)
    assert torch.equal(again(x), layer(x)) and times.measured == [3, "model"]
    if not parametrize.is_parametrized(layer):
        loaded = pickle.loads(pickle.dumps(layer))
        assert type(loaded) is type(layer) and torch.equal(loaded(x), layer(x))
    assert ours.restore_(layer) == [""] and type(layer) is kind and list(vars(layer)) == names
    require_close(layer(x), copied(x.double()), 2)


def test_parametrizations_after_replacing():
    layer, x = torch.nn.Conv1d(4, 4, 3), random(1, 1, 4, 9, grad=False)
    ours.replace_(layer, where=lambda layer: True)
    y = layer(x)
    parametrizations.weight_norm(layer)
    assert ours.restore_(layer) == [""] and type(layer).__bases__ == (torch.nn.Conv1d,)
    ours.replace_(layer, where=lambda layer: True)
    parametrize.register_parametrization(layer, "bias", torch.nn.Identity())
    assert ours.restore_(layer) == [""] and type(layer).__bases__ == (torch.nn.Conv1d,)
    torch.testing.assert_close(layer(x), y)
    ours.replace_(layer, where=lambda layer: True)
    for name in ("bias", "weight"):
        parametrize.remove_parametrizations(layer, name)
    assert type(layer) is ours.Conv1d


@pytest.mark.parametrize("make", (torch.nn.LazyConv2d, torch.nn.LazyConvTranspose2d))
def test_lazy_layers(times, make):
    torch.manual_seed(1)
    model, kept = (torch.nn.Sequential(make(4, 3), torch.nn.LazyBatchNorm2d()) for _ in range(2))
    assert ours.replace_(kept) == ["0"] and ours.restore_(kept) == ["0"] and "cls_to_become" not in vars(kept[0])
    assert ours.replace_(model, X) == ["0"]
    assert type(model[0]).__module__ == "partita.nn.modules" and int(model[1].num_batches_tracked) == 0
    ours.restore_(model)
    assert type(model[0]) is getattr(torch.nn, make.__name__.removeprefix("Lazy"))


def test_what_is_skipped_is_said(times):
    shared = torch.nn.Conv1d(2, 2, 3, padding=1)
    quantised = torch.ao.nn.quantized.Conv1d(2, 2, 3)
    report = ours.replace_(torch.nn.ModuleList([shared, shared, Doubled(1, 1, 3), quantised, torch.nn.MaxPool1d(2)]))
    assert report == ["0"]
    reasons = {row["layer"]: row["reason"] for row in report.to_dict()["layers"]}
    assert reasons["2"] == "Doubled overrides forward" and "quantized" in reasons["3"] and "4" not in reasons
    report = ours.replace_(torch.nn.Sequential(shared, torch.nn.Conv1d(2, 2, 1)), where=lambda layer: layer is shared)
    assert report == ["0"] and [row["reason"] for row in report.to_dict()["layers"]] == ["always", "where does not choose it"]


def test_measured_times(monkeypatch, tmp_path):
    """A layer that is hundreds of times as fast, and one that each call packs anew, with the clock of this machine."""
    monkeypatch.setattr(_measure, "_path", lambda: tmp_path / "layers.jsonl")
    monkeypatch.setattr(_measure.memory, "known", None)
    layer = torch.nn.Conv2d(8, 8, 31, padding=15, groups=8)
    report = ours.replace_(layer, torch.ones(1, 8, 40, 40))
    row, = report.to_dict()["layers"]
    assert report == [""] and row["torch_us"] > 3 * row["partita_us"] > 0
    with torch.no_grad():
        assert layer(torch.ones(1, 8, 40, 40, dtype=torch.float32)).shape == (1, 8, 40, 40)
    assert [row["call"]["training"] for row in ours.replace_(layer).to_dict()["layers"]] == [True, False]
