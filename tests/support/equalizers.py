# SPDX-License-Identifier: MIT
"""Lists of equalizers for the tests of the package and of the program: headphones, lines, and lines that are refused."""
import numpy as np

# What the AutoEq project and others publish for headphones: name, level, and type, Fc, gain and Q of each filter.
HEADPHONES = """
AKG K52: -6.8; LSC 105 -4.6 0.7, PK 1892 7.2 1.08, PK 186 -7.6 1.41, PK 4703 -7.3 0.98, PK 3321 8.2 2.34, HSC 10000
  -5.5 0.7, PK 97 2.9 3.14, PK 62 -1.4 1.34, PK 483 -2.2 2.46, PK 370 2.8 5.73
AKG K612 Pro: -6.2; LSC 105 6.2 0.7, PK 2828 -3.8 1.72, PK 877 1.9 1.62, PK 5761 -5.3 5.54, PK 3851 2.1 3.59, HSC
  10000 -6.5 0.7, PK 225 -1.1 1.69, PK 105 0.8 2.67, PK 1492 1 5.22, PK 1926 -0.4 3.24
AKG K701: -6.0; LSC 105 6 0.7, PK 202 -2.3 0.49, PK 1294 3.7 2.62, PK 594 3.4 2, PK 2360 -3.6 3.71, HSC 10000 -9.2
  0.7, PK 3511 2.4 5.34, PK 5068 1.6 2.91, PK 6180 -2.4 6, PK 21 0.1 3.33
AKG K702: -6.1; LSC 105 6.1 0.7, PK 2252 -5.4 1.41, PK 778 3.6 1.07, PK 95 2.2 2.23, PK 1121 -2.2 3.09, HSC 10000
  -12.5 0.7, PK 4638 3 4.04, PK 6398 -4.1 6, PK 666 -0.2 3.04, PK 10000 5.8 1.67
Audeze LCD-X: -5.8; LSC 105 6.3 0.7, PK 867 -4.1 1.16, PK 4264 10 0.48, PK 5568 -13.2 1.74, PK 138 -3.8 0.2, HSC
  10000 -10.3 0.7, PK 138 0.4 1.67, PK 26 0.6 2.65, PK 38 -0.7 2.87, PK 234 -0.4 2.24
Audient EVO SR2000: -6.4; LSC 105 3.9 0.7, PK 54 -9.1 0.55, PK 862 -3.1 1.33, PK 3347 3.9 1.68, PK 32 8.6 0.83, HSC
  10000 -3.9 0.7, PK 325 2.1 3.05, PK 198 -1 1.51, PK 5534 -3.7 6, PK 2113 1.3 3.36
Audio-Technica ATH-M40x: -3.0; LSC 105 0.5 0.7, PK 155 -5 2.11, PK 317 3.4 1.43, PK 2637 2.2 1.93, PK 1444 -1.6
  1.64, HSC 10000 -13 0.7, PK 8015 3.6 1.03, PK 54 -1.7 1.72, PK 82 3.3 4.47, PK 4262 -2.5 6
Audio-Technica ATH-M50x: -4.9; LSC 105 1.8 0.7, PK 149 -5.2 1.23, PK 349 4.4 1.51, PK 6201 5 2.42, PK 4296 -4.5
  4.03, HSC 10000 -11.8 0.7, PK 9752 4.4 1.16, PK 2246 -1.7 2.74, PK 41 -1.3 2.06, PK 59 2.4 4.76
Audio-Technica ATH-R70x: -6.3; LSC 105 7.1 0.7, PK 99 -3.6 0.39, PK 4807 4.7 4.08, PK 8242 3.1 2.44, PK 41 1.6 3.4,
  HSC 10000 -7.6 0.7, PK 2010 0.7 3.36, PK 3506 -1.8 5.57, PK 10000 3.9 1.79, PK 3058 1.5 6
AUNE AR5000: -5.8; LSC 105 8.1 0.7, PK 86 -4.8 0.25, PK 1622 3.9 1.57, PK 8602 4.9 1.62, PK 4916 -3 3.03, HSC 10000
  -5.6 0.7, PK 2966 -2 4.78, PK 3563 2.6 6, PK 96 0.5 1.42, PK 56 -0.5 1.7
Beats Studio3 Wireless: -6.4; LSC 105 2.8 0.7, PK 81 -6.6 0.4, PK 1997 4.5 1.31, PK 32 7.2 0.81, PK 9564 -6.2 6, HSC
  10000 1 0.7, PK 576 2.8 2.61, PK 263 -1.7 0.9, PK 3564 -3.6 6, PK 149 2.1 2.39
Behringer HC 200: -6.1; LSC 105 5.7 0.7, PK 1052 -10.6 0.89, PK 2063 10.5 0.44, PK 1412 -6.5 1.44, PK 354 -4.6 0.68,
  HSC 10000 -3.6 0.7, PK 6984 3.3 3.38, PK 71 -0.9 2.38, PK 5724 -2.5 6, PK 150 0.5 2.71
Beyerdynamic DT 770 Pro 80 Ohm: -5.6; LSC 105 3.4 0.7, PK 118 -4.5 1.07, PK 184 5.8 2.15, PK 396 -1 1.2, PK 68 4.4
  4.37, HSC 10000 -8.3 0.7, PK 3622 4.5 4.09, PK 40 -1.1 2.98, PK 2632 -2.3 3.17, PK 1719 0.7 2.58
Beyerdynamic DT 770 Pro 250 Ohm: -4.7; LSC 105 4.5 0.7, PK 210 4.8 3.03, PK 3495 5.8 3.09, PK 40 -5.6 0.74, PK 8063
  -5.7 0.67, HSC 10000 -11.4 0.7, PK 9553 5.1 1.79, PK 1552 1.1 3.62, PK 82 2.6 6, PK 64 -1.2 3.06
Beyerdynamic DT 880 250 Ohm: -6.0; LSC 105 6 0.7, PK 205 -1.9 0.98, PK 1664 2 1, PK 5751 -6.1 5.35, PK 71 1 1.79,
  HSC 10000 -7.2 0.7, PK 4197 3.3 3.61, PK 2919 -1.6 4.15, PK 7833 -0.9 6, PK 555 0.5 2.74
Beyerdynamic DT 990 Pro 250 Ohm: -6.1; LSC 105 6.1 0.7, PK 564 2.2 1.86, PK 8240 -6 0.91, PK 2070 2.6 2.69, PK 82
  1.7 4.34, HSC 10000 -15.8 0.7, PK 9052 6.4 1.28, PK 181 -1.1 2.55, PK 4255 2.9 6, PK 5819 -4.1 5.58
Fifine Ampligame H3: -6.4; LSC 105 -1.7 0.7, PK 172 -9.6 0.81, PK 415 8.2 1.16, PK 252 -3.1 0.99, PK 726 3.7 0.91,
  HSC 10000 -3 0.7, PK 7643 3.8 1.72, PK 3174 -5.1 3.78, PK 2009 1.8 3.23, PK 59 1.1 3.88
Sony MDR-MV1: -4.1; LSC 105 9.7 0.7, PK 46 -9.2 0.37, PK 1722 2.8 0.95, PK 4643 9.2 1.99, PK 5779 -9.2 1.5, PK 128
  0.5 2.09, PK 242 -0.7 2.04, PK 705 0.8 2.45, PK 2955 -0.9 4.58, HSC 10000 -2.2 0.7
Sennheiser HD 650: -6.6; PK 27 6.4 0.82, PK 717 1.1 1.81, PK 3074 -3.2 2.16, PK 4460 2.7 1.92, PK 10164 2.1 2.13, PK
  52 1.3 4.29, PK 189 -1.8 0.97, PK 462 0.7 1.82, PK 12982 1 1.43, PK 19948 -4.3 0.47
Beyerdynamic DT150: -6.0; PK 80 6 4.27, PK 142 1.11 2.42, PK 159 -11.82 0.64, PK 378 5.42 1.18, PK 1461 -0.43 1.61,
  PK 1593 0.65 1.41, PK 3694 6 3.93
"""
LISTS = {name: (float(level), [(kind, *map(float, values)) for kind, *values in map(str.split, filters.split(","))])
         for name, level, filters in (entry.replace(": ", ";", 1).split(";")
                                      for entry in HEADPHONES.strip().replace("\n  ", " ").split("\n"))}


def biquad(kind, f, gain, q, rate):
    """The Audio EQ Cookbook: b0, b1, b2, a0, a1, a2."""
    a, w = 10**(gain / 40), 2 * np.pi * f / rate
    alpha, cos = np.sin(w) / (2 * q), np.cos(w)
    if kind == "PK":
        return [1 + alpha * a, -2 * cos, 1 - alpha * a, 1 + alpha / a, -2 * cos, 1 - alpha / a]
    sign, root = (1 if kind == "LSC" else -1), 2 * np.sqrt(a) * alpha
    return [a * ((a + 1) - sign * (a - 1) * cos + root), sign * 2 * a * ((a - 1) - sign * (a + 1) * cos),
            a * ((a + 1) - sign * (a - 1) * cos - root), (a + 1) + sign * (a - 1) * cos + root,
            -sign * 2 * ((a - 1) + sign * (a + 1) * cos), (a + 1) + sign * (a - 1) * cos - root]


def text_of(level, filters):
    lines = [f"Preamp: {level} dB"]
    lines += [f"Filter {i}: ON {kind} Fc {f} Hz Gain {gain} dB Q {q}" for i, (kind, f, gain, q) in enumerate(filters)]
    return "\n".join(lines)


def magnitude_and_delay(b, a, w):
    """Of a filter at angles w: dB, and group delay by the derivative of each polynomial."""
    def delay(c):
        z = np.exp(-1j * np.outer(w, np.arange(len(c))))
        return z @ c, z @ (np.arange(len(c)) * c)
    (over, over_times), (under, under_times) = delay(np.asarray(b)), delay(np.asarray(a))
    return 20 * np.log10(np.abs(over / under)), np.real(over_times / over) - np.real(under_times / under)


# Lines behind "Filter", and the sections that they are.
LINES = [
    ("1: ON PK Fc 1,234.5 Hz Gain -2.4 dB Q 0.70", {"kind": "peak", "frequency": 1234.5, "gain": -2.4, "q": 0.7}),
    ("2: ON  PK       Fc   63,8 Hz  Gain  -5,0 dB  BW Oct 0,5",
     {"kind": "peak", "frequency": 63.8, "gain": -5, "bandwidth": 0.5}),
    (": ON LSC 9.6 dB Fc 100 Hz Gain 4 dB", {"kind": "low-shelf", "frequency": 100, "gain": 4, "slope": 9.6}),
    (": on hs Fc 8000 Hz Gain 4 dB", {"kind": "high-shelf", "frequency": 8000, "gain": 4, "slope": 10.8}),
    (": ON LS 12dB Fc 100 Hz Gain -8 dB", {"kind": "low-shelf", "frequency": 100 * 10**0.1, "gain": -8, "slope": 12}),
    (": ON HS 6dB Fc 1000 Hz Gain 8 dB", {"kind": "high-shelf", "frequency": 1000 / 10**0.2, "gain": 8, "slope": 6}),
    (": ON HP Fc 20 Hz", {"kind": "high-pass", "frequency": 20}),
    (": ON LPQ Fc 20000 Hz Q 0.5", {"kind": "low-pass", "frequency": 20000, "q": 0.5}),
    (": ON PK Fc 1.234,5 Hz Gain -2,4 dB Q 0,707", {"kind": "peak", "frequency": 1234.5, "gain": -2.4, "q": 0.707}),
    (": ON PK Fc 1,234 Hz Gain -2.4 dB Q 0.707", {"kind": "peak", "frequency": 1234, "gain": -2.4, "q": 0.707}),
    (": ON PK Fc 1.5 kHz Gain \u22123 dB Q 1", {"kind": "peak", "frequency": 1500, "gain": -3, "q": 1}),
    (": ON PK Fc 12\u00a0345 Hz Gain -,5 dB Q 0,7", {"kind": "peak", "frequency": 12345, "gain": -0.5, "q": 0.7}),
    (": ON NO Fc 50 Hz", {"kind": "notch", "frequency": 50, "q": 30}),
]

# Lists, and a part of what Python says.
REFUSED = [
    ("Filter: ON XX Fc 5 Hz", "type = 'XX': one of 'PK'"),
    ("Filter 3: ON LS Gain 5 dB Q 1", "'ON LS Gain 5 dB Q 1': needs Fc"),
    ("Filter 3: ON HS 6dB Fc 5 Hz", "'ON HS 6dB Fc 5 Hz': needs Fc and Gain"),
    ("Filter: PK Fc 5 Hz Gain 3 dB", "'PK Fc 5 Hz Gain 3 dB': needs ON or OFF"),
    ("Filter: ON PK Fc 1,234 Hz Gain 3 dB", "1,234 may be two numbers"),
    ("Filter: ON PK Fc 1 500 Hz Gain 3 dB", "'1 500' is no number"),
    ("Filter: ON PK Fc 1k5 Hz Gain 3 dB", "'1k5' is no number"),
    ("Filter: ON PK Fc 5 Hz Gain 3 dB Q", "'' is no number"),
    ("Preamp: x dB", "'x dB': 'x' is no number"),
    ("GraphicEQ: 20, -1.5; 30, 1", "'20,' is no number"),
    ("GraphicEQ: 20; 30", "GraphicEQ has shape (2, 1), not (points, 2)"),
    ("Filter: ON HP Fc 5 Hz\nGraphicEQ: 20 1", "cannot be read together"),
    ("Channel: L\nFilter: ON PK Fc 5 Hz", "'Channel: L': CHANNEL is not supported"),
]
