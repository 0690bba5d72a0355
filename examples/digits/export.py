#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes scikit-learn's handwritten digits (1797 images of 8x8) as the file that digits.c reads: for each image 64 bytes
of grey levels, 0 to 16, and one byte with the digit.

    export.py OUT
"""
import sys

try:
    import numpy
    import sklearn.datasets
except ImportError as error:
    sys.exit(f"export.py: {error}: install scikit-learn (Debian: python3-sklearn), which has the digits")

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: export.py OUT")
digits = sklearn.datasets.load_digits()
numpy.column_stack([digits.data, digits.target]).astype(numpy.uint8).tofile(sys.argv[1])
