# SPDX-License-Identifier: MIT
"""Shared by the tests that run the plug-ins in programs."""
import os
import sys

import numpy as np

for folder in ("apps", "live"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))

from rig import wav_bytes  # noqa: E402

PREFIX = "urn:partita:lv2:"

STATE = """@prefix atom: <http://lv2plug.in/ns/ext/atom#> .
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix pset: <http://lv2plug.in/ns/ext/presets#> .
@prefix state: <http://lv2plug.in/ns/ext/state#> .
<> a pset:Preset ; lv2:appliesTo <{uri}> ;
    state:state [ <urn:partita:lv2:impulse-response> "{path}"^^atom:Path ] .
"""


class WithStates:
    """Beside rig.Case."""

    def state(self, variant, file, folder="state"):
        """Writes a state of a plug-in that plays with the file."""
        os.makedirs(folder, exist_ok=True)
        self.write(folder + "/state.ttl", STATE.format(uri=PREFIX + variant, path=os.path.abspath(file)).encode())
        return folder

    def response(self, name, channels, n, rate=48000):
        """Writes random taps [n, channels], and returns them."""
        taps = (self.random.standard_normal((n, channels)) / np.sqrt(n)).astype("f4")
        self.write(name, wav_bytes(taps, rate=rate, bits=32))
        return taps
