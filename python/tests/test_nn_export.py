# SPDX-License-Identifier: MIT
"""Programs that PyTorch makes of replaced models: exported, traced, scripted, fused and quantised ones; its counts."""
import io

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from nn_checks import random, require_close  # noqa: E402
from torch import nn  # noqa: E402

import partita.nn as ours  # noqa: E402

CONVOLUTIONS = 4  # of network()


def network(replaced=True):
    """In evaluation, with statistics that are not those of a new BatchNorm."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 7, padding=3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 4, padding="same", groups=2), nn.BatchNorm2d(8),
        nn.Conv2d(8, 4, 3, stride=2, padding=1, padding_mode="reflect", bias=False), nn.ReLU(),
        nn.ConvTranspose2d(4, 2, 4, stride=2, padding=1))
    for layer in model:
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
    if replaced:
        assert len(ours.replace_(model, where=lambda layer: True)) == CONVOLUTIONS
    return model.eval()


X = random(1, 2, 3, 12, 14, grad=False)


def require_network(y):
    with torch.no_grad():
        require_close(y, network(False).double()(X.double()), CONVOLUTIONS)


def operators(graph):
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


# Exported programs.

@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_do_not_need_the_package(strict):
    sizes = {0: torch.export.Dim("n"), 2: torch.export.Dim("h", min=8)}
    program = torch.export.export(network(), (X,), dynamic_shapes=(sizes,), strict=strict)
    assert not [name for name in operators(program.graph) if "partita" in name]
    require_network(program.module()(X))
    lower = operators(program.run_decompositions().graph)
    assert lower.count("aten.convolution.default") == CONVOLUTIONS


def test_compiled_programs_have_the_operators():
    graphs = []

    def backend(graph, examples):
        graphs.append(graph.graph)
        return graph.forward

    torch._dynamo.reset()
    with torch.no_grad():
        require_network(torch.compile(network(), backend=backend, fullgraph=True)(X))
    assert len([name for name in operators(graphs[0]) if "partita" in name]) == CONVOLUTIONS


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
def test_onnx(dynamo):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    file = io.BytesIO()
    torch.onnx.export(network(), (X,), file, dynamo=dynamo)
    require_onnx(onnx.load_from_string(file.getvalue()))


def test_onnx_of_a_trace():
    onnx = pytest.importorskip("onnx")
    file = io.BytesIO()
    torch.onnx.export(torch.jit.trace(network(), X), (X,), file, dynamo=False)
    require_onnx(onnx.load_from_string(file.getvalue()))


def require_onnx(model):
    from onnx.reference import ReferenceEvaluator
    assert not [node for node in model.graph.node if "partita" in node.domain or "partita" in node.op_type]
    name, = (value.name for value in model.graph.input)
    require_network(torch.from_numpy(ReferenceEvaluator(model).run(None, {name: X.numpy()})[0]))


# TorchScript.

def test_script():
    script = torch.jit.script(network())
    require_network(script(X))
    assert "partita::" not in str(script.inlined_graph)


def test_scripting_leaves_the_model_as_it_is():
    model = nn.Sequential(network(), nn.Tanh())
    script = torch.jit.script(model)
    assert type(model[0][0]) is ours.Conv2d
    assert script(X).shape == model(X).shape
    with torch.no_grad():  # they share the weights
        model[0][0].weight.mul_(2)
        require_close(script(X), model(X).double(), 2 * CONVOLUTIONS)


@pytest.mark.parametrize("grad", [True, False])
def test_trace(grad):
    with torch.set_grad_enabled(grad):
        trace = torch.jit.trace(network(), X)  # which checks the trace, too
        require_network(trace(X))
    assert "partita::" not in str(trace.inlined_graph)


def test_trace_of_layers_whose_choices_depend_on_gradients():
    """The trace is checked without them."""
    model = network(False)
    ours.replace_(model)
    for layer in model:
        if isinstance(layer, ours.modules.Replaced):
            layer._choices.latest = {(True, False): True, (False, False): False}  # gradients, autocast
    require_network(torch.jit.trace(model, X)(X))


# Graphs of torch.fx, fused and quantised models.

def test_fx_keeps_the_layers():
    graph = torch.fx.symbolic_trace(network())
    assert type(graph.get_submodule("0")) is ours.Conv2d and type(graph.get_submodule("7")) is ours.ConvTranspose2d
    assert [node.op for node in graph.graph.nodes if node.users] == ["placeholder"] + ["call_module"] * 8
    with torch.no_grad():
        require_network(graph(X))


def test_batch_norm_is_folded_before_and_after_replacing():
    from torch.fx.experimental.optimization import fuse
    folded = fuse(network(False))
    assert ours.replace_(folded, where=lambda layer: True) == ["0", "3", "5", "7"]
    late = network()
    ours.restore_(late)
    late = fuse(late)
    ours.replace_(late, where=lambda layer: True)
    for model in (folded, late, fuse(network())):
        with torch.no_grad():
            require_network(model(X))
    one = nn.utils.fuse_conv_bn_eval(network()[0], network()[1])
    assert type(one) is ours.Conv2d


def test_fuse_modules():
    from torch.ao.quantization import fuse_modules, fuse_modules_qat
    groups = [["0", "1", "2"], ["3", "4"], ["5", "6"]]
    fused = fuse_modules(network(), groups)
    expected = fuse_modules(network(False), groups)
    ours.replace_(expected, where=lambda layer: isinstance(layer, nn.Conv2d))
    assert [type(layer) for layer in fused][:6] == [type(layer) for layer in expected][:6]
    with torch.no_grad():
        require_network(fused(X))
    for replaced in (True, False):
        assert type(fuse_modules_qat(network(replaced).train(), groups)[0]) is torch.ao.nn.intrinsic.ConvBnReLU2d


def quantised(kind, replaced):
    """Of the first layer, in three ways."""
    from torch.ao import quantization as q
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    layer = network(replaced)[:1]
    if kind == "fx":
        model = prepare_fx(layer, q.get_default_qconfig_mapping("qnnpack"), (X,))
    else:
        model = nn.Sequential(q.QuantStub(), layer, q.DeQuantStub())
        model.qconfig = q.get_default_qconfig("qnnpack") if kind == "static" else q.get_default_qat_qconfig("qnnpack")
        model = q.prepare(model) if kind == "static" else q.prepare_qat(model.train()).eval()
    model(X)
    return (convert_fx if kind == "fx" else q.convert)(model)


@pytest.mark.parametrize("kind", ["static", "fx", "training"])
def test_quantised_models_are_those_of_torch(kind):
    """Ours is fed with the same samples and taps of 8 bits. The range of its results is measured in f32, so that a
    result may be rounded to a neighbouring number."""
    ours, theirs = (quantised(kind, replaced) for replaced in (True, False))
    if kind != "fx":
        assert type(ours[1][0]) is type(theirs[1][0]) is torch.ao.nn.quantized.Conv2d
    results = ours(X), theirs(X)
    steps = results[1].unique().diff().min()
    assert (results[0] - results[1]).abs().max() <= 1.001 * steps


def test_layers_stay_in_models_with_other_quantised_layers():
    model = nn.Sequential(network(), nn.Flatten(), nn.Linear(2 * 12 * 14, 3))
    model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear, nn.Conv2d})
    assert type(model[0][0]) is ours.Conv2d and type(model[2]) is torch.ao.nn.quantized.dynamic.Linear
    require_network(model[0](X))


# Counts and times.

def flops(model, train):
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        y = model(X)
        if train:
            y.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("train", [False, True])
def test_flops_are_those_of_torch(train):
    assert flops(network(), train) == flops(network(False), train) > 1e6


def events(model, train):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        y = model(X)
        if train:
            y.sum().backward()
    return [event for event in profile.events() if event.name.startswith("partita::")]


@pytest.mark.parametrize("repeated", [False, True])
def test_profiles_show_calls_and_shapes(repeated):
    model = network()
    with torch.no_grad():
        model(X) if repeated else None
        seen = events(model, False)
    assert sorted(event.name for event in seen) == ["partita::conv"] * 3 + ["partita::conv_input"]
    shapes = [list(shape) for shape in seen[0].input_shapes[:3]]
    assert shapes == [[2, 3, 12, 14], [8, 3, 7, 7], [8]]


def test_profiles_of_training():
    model = network()
    names = [event.name for event in events(model, True)]
    assert names.count("partita::conv") >= CONVOLUTIONS - 1 and "partita::conv_weight" in names


# Models in training. All in f64, against PyTorch's layers.

def gradients(model, run=None):
    (run or model)(X.double().requires_grad_()).square().sum().backward()
    return [parameter.grad for parameter in model.parameters()]


def require_gradients(results, expected):
    assert len(results) == len(expected)
    for result, want in zip(results, expected):
        require_close(result, want, 4 * CONVOLUTIONS)  # through all layers forward, the square, and back


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_of_activations(reentrant):
    from torch.utils.checkpoint import checkpoint
    model = network().double()
    require_gradients(gradients(model, lambda x: checkpoint(model, x, use_reentrant=reentrant)),
                      gradients(network(False).double()))


def test_tied_weights():
    def tied(replaced):
        torch.manual_seed(4)
        first, same, back = nn.Conv2d(3, 3, 7, padding=3), nn.Conv2d(3, 3, 7, padding=3), nn.ConvTranspose2d(3, 3, 7)
        same.weight = back.weight = first.weight
        model = nn.Sequential(first, nn.Tanh(), same, nn.Tanh(), back).double()
        if replaced:
            assert ours.replace_(model, where=lambda layer: True) == ["0", "2", "4"]
        assert len(list(model.parameters())) == 4
        return model
    require_gradients(gradients(tied(True)), gradients(tied(False)))


def averaged(replaced):
    from torch.optim import swa_utils
    model = network(replaced).double().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    for _ in range(3):
        optimizer.zero_grad()
        model(X.double()).square().mean().backward()
        optimizer.step()
        average.update_parameters(model)
        average(X.double())  # in between, with taps that change
    swa_utils.update_bn([X.double()], average)
    return average


def test_averaged_models():
    average, expected = averaged(True), averaged(False)
    assert type(average.module[0]) is ours.Conv2d
    assert list(average.state_dict()) == list(expected.state_dict())
    with torch.no_grad():  # three steps, and forward
        require_close(average.eval()(X.double()), expected.eval()(X.double()), 4 * 4 * CONVOLUTIONS)
