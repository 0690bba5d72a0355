# SPDX-License-Identifier: MIT
"""Settings of all tests: the same examples in every run, with no limit of time for one example."""
import hypothesis

hypothesis.settings.register_profile("same", derandomize=True, deadline=None, database=None, max_examples=60)
hypothesis.settings.load_profile("same")
