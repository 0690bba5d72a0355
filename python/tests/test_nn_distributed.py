# SPDX-License-Identifier: MIT
"""Layers of partita.nn under torch's DistributedDataParallel and fully_shard, in two processes on this machine: the losses
of one process, checkpoints, and reductions of gradients that begin while the backward pass goes on, as with torch's own
layers."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)
if not torch.distributed.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import partita.nn

pytestmark = pytest.mark.skipif(not os.environ.get("PARTITA_SLOW"), reason="a long run: PARTITA_SLOW=1")

PROCESSES, STEPS, SAVED = 2, 5, 3
SHAPE = (8, 3, 16, 16) # of a batch


def network(ours):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, padding=3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 7, padding=3, groups=2), torch.nn.ReLU(),
        torch.nn.Flatten(2), torch.nn.Conv1d(8, 4, 9), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(4 * 248, 1)).double()
    if ours:
        assert len(partita.nn.replace_(model, where=lambda layer: True)) == 3
    return model


def batches():
    random = torch.Generator().manual_seed(2)
    return [(torch.randn(SHAPE, generator=random, dtype=torch.float64),
             torch.randn(SHAPE[0], 1, generator=random, dtype=torch.float64)) for _ in range(STEPS)]


def train(model, optimizer, steps, part=slice(None)):
    """The losses of these steps, each on this part of a batch."""
    losses = []
    for x, target in batches()[steps]:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x[part]), target[part])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


# What each of the processes does.

def train_together(rank, folder):
    """Trains, saves on the way, and continues twice: at once and from the checkpoint."""
    part = slice(rank * SHAPE[0] // PROCESSES, (rank + 1) * SHAPE[0] // PROCESSES)
    parallel = torch.nn.parallel.DistributedDataParallel

    def mean(losses):
        torch.distributed.all_reduce(losses)
        return losses / PROCESSES

    model = parallel(network(True))
    optimizer = optimizer_of(model)
    losses = train(model, optimizer, slice(SAVED), part)
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, folder / "checkpoint.pt")
    losses = torch.cat([losses, train(model, optimizer, slice(SAVED, None), part)])
    torch.distributed.barrier()

    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    other = network(True)
    other.load_state_dict(saved["model"])
    other = parallel(other)
    optimizer = optimizer_of(other)
    optimizer.load_state_dict(saved["optimizer"])
    continued = train(other, optimizer, slice(SAVED, None), part)
    return mean(losses), mean(continued)


def train_sharded(rank):
    """Each process keeps a half of the parameters and gathers those of a layer for its calls."""
    from torch.distributed.fsdp import fully_shard
    part = slice(rank * SHAPE[0] // PROCESSES, (rank + 1) * SHAPE[0] // PROCESSES)
    mesh = torch.distributed.init_device_mesh("cpu", (PROCESSES,))
    model = network(True)
    for layer in model:
        if isinstance(layer, (torch.nn.Conv1d, torch.nn.Conv2d)):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = train(model, optimizer_of(model), slice(None), part)
    torch.distributed.all_reduce(losses)
    return losses / PROCESSES


def order_of_events(ours):
    """When layers begin their backward pass and when gradients are reduced, in the last of some steps. Buckets are small:
    one for nearly every parameter."""
    model = network(ours)
    names = {parameter: name for name, parameter in model.named_parameters()}
    events = []
    for name, layer in model.named_children():
        if list(layer.parameters()):
            layer.register_full_backward_pre_hook(lambda layer, grad, name=name: events.append("backward " + name))
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)

    def reduce(state, bucket):
        events.append("reduce " + " ".join(names[p] for p in bucket.parameters()))
        work = torch.distributed.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / PROCESSES)

    model.register_comm_hook(None, reduce)
    optimizer = optimizer_of(model)
    for step in range(3): # buckets are formed anew after the first
        events.clear()
        train(model, optimizer, slice(step, step + 1))
    return events


def main(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=PROCESSES)
    losses, continued = train_together(rank, folder)
    sharded = train_sharded(rank)
    events = [order_of_events(ours) for ours in (True, False)]
    if rank == 0:
        torch.save({"losses": losses, "continued": continued, "sharded": sharded, "events": events}, folder / "results.pt")
    torch.distributed.barrier()  # a process that ended earlier would break the connection under the other one
    torch.distributed.destroy_process_group()


# What is compared.

@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    processes = [subprocess.Popen([sys.executable, __file__, str(rank), str(folder)], env=environment, stderr=subprocess.PIPE)
                 for rank in range(PROCESSES)]
    try:
        said = [process.communicate(timeout=240)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * PROCESSES, said
    return {**torch.load(folder / "results.pt", weights_only=True), "checkpoint": folder / "checkpoint.pt"}


def losses_of_one_process(change=0.0, seed=0):
    """change: relative change of all parameters before the first step."""
    model = network(True)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 1 + change * torch.randn(parameter.shape, generator=random, dtype=torch.float64).sign()
    return train(model, optimizer_of(model), slice(None)).numpy()


@pytest.mark.parametrize("kind", ["losses", "sharded"])
def test_losses_of_one_process(results, kind):
    """Two processes add the same numbers in another order. The longest sums, of the first layer's gradient, have
    8 * 16 * 16 terms, so a step's rounding changes parameters by no more than a relative 2 * 2048 u of the gradients, all
    steps by STEPS times that. What such a change does to the losses is measured with a larger one, in three directions."""
    alone = losses_of_one_process()
    change = 2.0**-30
    gain = max(np.abs(losses_of_one_process(change, seed) - alone).max() for seed in range(3)) / change
    gate = gain * STEPS * 2 * 2048 * 2.0**-53
    assert gate < 1e-8 * alone.min() # so that it says something
    np.testing.assert_allclose(results[kind].numpy(), alone, rtol=0, atol=gate)


def test_a_checkpoint_continues_with_the_same_bits(results):
    np.testing.assert_array_equal(results["continued"].numpy(), results["losses"].numpy()[SAVED:])


def test_a_checkpoint_is_that_of_torchs_layers(results):
    model = network(False)
    model.load_state_dict(torch.load(results["checkpoint"], weights_only=True)["model"])
    loss = train(model, optimizer_of(model), slice(SAVED, SAVED + 1))[0]
    assert float(loss) == pytest.approx(float(results["losses"][SAVED]), rel=1e-9)


def test_reductions_overlap_the_backward_pass(results):
    ours, torchs = results["events"]
    assert ours == torchs
    assert ours.index(next(event for event in ours if event.startswith("reduce"))) < ours.index("backward 0")
    reduced = " ".join(event for event in ours if event.startswith("reduce")).split()
    assert sorted(name for name in reduced if name != "reduce") == sorted(name for name, _ in network(True).named_parameters())


def test_the_program_of_the_page(tmp_path):
    """torchrun starts it; its model is one of torch's layers."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/many-machines.md").read_text(encoding="utf-8")
    program = re.search(r"<!-- file: train.py -->\n```python\n(.*?)```", page, re.S).group(1)
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1",
                    "--nproc-per-node", str(PROCESSES), "train.py"], cwd=tmp_path, check=True, timeout=240,
                   env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
    layers = torch.nn.Sequential(torch.nn.Conv1d(1, 16, 65), torch.nn.ReLU(), torch.nn.Conv1d(16, 1, 65))
    layers.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))


if __name__ == "__main__":
    main(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
