# SPDX-License-Identifier: MIT
"""Examples in help texts, in README files and in tutorials run as they stand."""
import doctest
import importlib.util
import inspect
import pathlib
import re
import wave

import numpy as np
import pytest

import partita
from partita import _adaptive, _bank, _equalizer, _explain, _options, _plan, _problem, _spectrum, _stream, correction

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDS = {"long-recordings": "soundfile", "signals": "scipy", "images": "scipy", "vision": "torch", "speech": "torch",
         "sequence-models": "torch"}
MODULES = [partita, _adaptive, _bank, _equalizer, _explain, _options, _plan, _problem, _spectrum, _stream, correction]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_examples_of_help_texts(module):
    assert doctest.testmod(module).failed == 0


def test_examples_are_found():
    assert sum(len(t.examples) for m in MODULES for t in doctest.DocTestFinder().find(m)) > 20


@pytest.mark.parametrize("path", ["README.md", "python/README.md"])
def test_examples_of_readme_files(path, tmp_path, monkeypatch, capsys):
    text = (ROOT / path).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert examples
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, example in enumerate(examples, 1):
        if "torch" in example and not importlib.util.find_spec("torch"):
            continue
        capsys.readouterr()
        exec(compile(example, f"{path}, example {number}", "exec"), names)  # noqa: S102
        printed = capsys.readouterr().out.splitlines()
        for line in re.findall(r"# prints: (.*)", example):
            assert line in printed


@pytest.mark.parametrize("name", ["reverb", "radio", "long-recordings", "signals", "images", "vision", "speech",
                                  "sequence-models"])
def test_tutorials(name, capsys, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    path = ROOT / f"docs/{name}-in-python.md"
    programs = re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)
    assert len(programs) >= 3
    names = {}
    for number, program in enumerate(programs, 1):
        capsys.readouterr()
        exec(compile(program, f"{path.name}, program {number}", "exec"), names)  # noqa: S102
        assert capsys.readouterr().out.splitlines() == re.findall(r"# prints: (.*)", program)
    if name == "reverb":
        with wave.open("walk.wav") as file:
            rate, samples = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), np.int16)
        # The notes begin with a change of their slope alone; a step of the output would stand out in these differences.
        bends = np.abs(np.diff(samples.reshape(-1, 2).astype(float), 3, axis=0))
        assert len(bends) > 11 * rate and bends[rate:].max() < 1.05 * bends[:rate].max()


def public():
    for name in partita.__all__:
        value = getattr(partita, name)
        yield name, value
        if inspect.isclass(value) and value.__module__.startswith("partita"):
            yield from ((f"{name}.{key}", member) for key, member in vars(value).items()
                        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)))


def test_everything_public_has_a_help_text():
    without = [name for name, value in public() if not inspect.getdoc(value)]
    assert not without
