# SPDX-License-Identifier: MIT
"""Settings of all tests: the same examples in every run, with no limit of time; no files of the user are read."""
import atexit
import os
import shutil
import tempfile

import hypothesis

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"])

hypothesis.settings.register_profile("same", derandomize=True, deadline=None, database=None, max_examples=60,
                                     suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("same")
