# SPDX-License-Identifier: MIT
# The module that cffi makes from the headers of the library.
from typing import Any

ffi: Any
lib: Any
