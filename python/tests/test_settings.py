# SPDX-License-Identifier: MIT
import pathlib
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import partita

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_versions_agree_with_the_build():
    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text(encoding="utf-8")).group(1)
    assert partita.__version__ == partita.library_version() == version


def test_every_function_of_the_headers_can_be_called():
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "include" / "partita").glob("*.h"))
    names = set(re.findall(r"^(?:PARTITA_API|static inline)[^;{]*?\b(partita_\w+)\(", text, re.M))
    assert len(names) > 80
    missing = [name for name in names if not hasattr(partita._lib, name)]
    assert not missing


def test_the_cpu_is_a_device():
    devices = partita.devices()
    assert devices[0].name == "cpu" and devices[0].description
    assert all(d.name.startswith("cuda:") for d in devices[1:])


def test_threads_of_new_plans():
    problem = partita.Problem(kernel=4000, size=100_000, pad=3999)
    try:
        partita.set_threads(1)
        assert partita.get_threads() == 1
        assert "cpu x1 " in partita.Plan(problem).explain()
        assert "cpu x2 " in partita.Plan(problem, threads=2).explain()
    finally:
        partita.set_threads(None)
    assert partita.get_threads() is None
    with pytest.raises(ValueError, match="threads = 0"):
        partita.set_threads(0)


def test_wisdom_in_a_file(tmp_path):
    wisdom, path = partita.Wisdom(), tmp_path / "wisdom"
    wisdom.calibrate()
    wisdom.save(path)
    again = partita.Wisdom(path)
    plan = partita.Plan(partita.Problem(kernel=64, size=1000), wisdom=again)
    del again, wisdom
    assert plan.forward(plan.filter(np.ones(64)), np.ones(1000, np.float32)).shape == (937,)


def test_files_that_are_no_wisdom(tmp_path):
    with pytest.raises(OSError, match="absent"):
        partita.Wisdom(tmp_path / "absent")
    (tmp_path / "other").write_text("not wisdom")
    with pytest.raises(partita.StateError, match="other"):
        partita.Wisdom(tmp_path / "other")
    with pytest.raises(OSError):
        partita.Wisdom().save(tmp_path / "no" / "folder")


def test_functions_of_signal_are_there_by_their_names_alone():
    signal = pytest.importorskip("partita.signal")
    assert set(partita._SIGNAL) <= set(signal.__all__)
    assert all(getattr(partita, name) is getattr(signal, name) for name in partita._SIGNAL)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        partita.nonsense


def test_descriptions_are_one_line():
    plan = partita.Plan(partita.Problem(kernel=(3, 5), size=(8, 9), in_channels=2, out_channels=4))
    bank = partita.Bank(slots=3, n_taps=4, block=16)
    bank.open(bank.filter([1, 2]))
    stream = partita.Stream([1.0, 2.0])
    expected = {
        plan.filter(np.ones((4, 2, 3, 5))): "<partita.Filter, 4 x 2 x 3 x 5 taps of f32, cpu/",
        bank: "<partita.Bank, 1 of 3 slots open, 1 -> 1 channels of f32, 4 taps, blocks of 16, cpu/direct, latency 0>",
        bank.filter([1]): "<partita.Filter of <partita.Bank, 1 of 3",
        partita.Spectrum(np.ones(1000)): "<partita.Spectrum, 1000 samples of f64, blocks of ",
        plan: "<partita.Plan cpu/",
        stream: "<partita.Stream 1 -> 1 channels of f64, 2 taps, cpu/direct, latency 0>",
    }
    for value, text in expected.items():
        assert repr(value).startswith(text) and "\n" not in repr(value), repr(value)
    stream.close()
    assert repr(stream) == "<partita.Stream, closed>"


def test_pickled_wisdom(tmp_path):
    wisdom, paths = partita.Wisdom(), [tmp_path / name for name in "ab"]
    partita.Plan(partita.Problem(kernel=2, size=20), effort="measure", wisdom=wisdom)
    copied = pickle.loads(pickle.dumps(wisdom))
    for store, path in zip((wisdom, copied), paths):
        store.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    plan = partita.Plan(partita.Problem(kernel=2, size=20), effort="measure", wisdom=wisdom)
    assert pickle.loads(pickle.dumps(plan)).engine == plan.engine
    state = wisdom.__getstate__()
    with pytest.raises(partita.StateError):
        copied.__setstate__({"file": state["file"][1:]})


def test_sources_that_are_not_built_say_what_to_do():
    got = subprocess.run([sys.executable, "-c", "import partita"], cwd=ROOT / "python", capture_output=True, text=True)
    assert got.returncode == 1
    assert "`pip install .`" in got.stderr and "in another folder" in got.stderr
