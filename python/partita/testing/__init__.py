# SPDX-License-Identifier: MIT
"""Other projects' tests on this package."""
