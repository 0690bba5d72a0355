# SPDX-License-Identifier: MIT
"""Settings of all tests: the same examples in every run, with no limit of time; no files of the user are read."""
import atexit
import importlib.util
import os
import pathlib
import shutil
import tempfile

import hypothesis
import pytest

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"])

hypothesis.settings.register_profile("same", derandomize=True, deadline=None, database=None, max_examples=60,
                                     suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("same")


@pytest.fixture
def load_example():
    """A function that imports a program of examples/."""
    def load(name):
        path = pathlib.Path(__file__).resolve().parents[2] / "examples" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        return example
    return load
