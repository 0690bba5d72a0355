# SPDX-License-Identifier: MIT
"""examples/generate_text.py: models learn, and generate the same text by states as by the whole forward."""
import importlib.util
import pathlib

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/generate_text.py"
spec = importlib.util.spec_from_file_location("generate_text", EXAMPLE)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("model", ["hyena", "s4", "striped"])
def test_the_text_is_the_same(model, capsys):
    losses, text = example.main([model, "--steps", "20", "--tokens", "40"])
    assert losses[-1] < 0.9 * losses[0]
    assert len(text) == example.PROMPT + 40 and text.startswith(example.TEXT[:example.PROMPT])
    assert text in capsys.readouterr().out
