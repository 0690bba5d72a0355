# SPDX-License-Identifier: MIT
"""Declarations for cffi, taken from the public headers.

What cffi's parser of C does not know is removed: comments, directives, what is for C++, attributes. Functions that are
inline in the headers become declarations: the C compiler that builds the module inserts their bodies, which pass the
sizes of structs to the functions ..._sized (docs/decisions/0031-sized-structs.md).
"""
import pathlib
import re

# Each header after those that it includes.
HEADERS = ("problem.h", "plan.h", "filter.h", "stream.h", "adaptive.h", "bank.h", "channelizer.h", "pairs.h", "templates.h",
           "design.h", "correction.h", "equalizer.h", "sequence.h", "decode.h", "advanced.h", "partita.h")
WORDS = {
    "PARTITA_API ": "",
    " PARTITA_NONBLOCKING": "",
    "PARTITA_OUTPUTS": "void *const *",
    "PARTITA_INPUTS": "const void *const *",
}
REMOVED = (
    r"//[^\n]*",
    r"^#ifdef __cplusplus\n.*?^#endif$",
    r"^union partita_\w+ \{.*?^\} __attribute__\(\(transparent_union\)\);$",
    r"^#[^\n]*$",
)
MACROS = re.compile(r"^#define (PARTITA_(?:VERSION_\w+|UNBOUNDED)) ", re.M)
INLINE = re.compile(r"^static inline ([^{;]+?)\n\{\n.*?^\}$", re.M | re.S)


def declarations(text):
    """The declarations of one header."""
    macros = [f"#define {name} ..." for name in MACROS.findall(text)]
    for pattern in REMOVED:
        text = re.sub(pattern, "", text, flags=re.M | re.S)
    text = INLINE.sub(r"\1;", text)
    for word, replacement in WORDS.items():
        text = text.replace(word, replacement)
    return "\n".join(macros) + re.sub(r"\n\s*\n+", "\n", text)


def read(folder):
    """The declarations of all public headers in a folder."""
    return "\n".join(declarations((pathlib.Path(folder) / name).read_text(encoding="utf-8")) for name in HEADERS)
