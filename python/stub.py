# SPDX-License-Identifier: MIT
"""The type stub of the module partita._partita, from the declarations that cffi gets."""
import keyword
import re

HEAD = '''# SPDX-License-Identifier: MIT
# Functions and constants of the C headers; written by python/stub.py.
from typing import Any, TypeAlias

ffi: Any  # a cffi.FFI that knows the types of the headers
_Pointer: TypeAlias = Any  # what ffi.new, ffi.cast and ffi.from_buffer return

class _Lib:
'''
BLOCK = re.compile(r"^(enum|struct|union)\b[^;{(]*\{(.*?)\}[^;{]*;", re.M | re.S)
MACRO = re.compile(r"^#define (\w+) \.\.\.$", re.M)


def constants(declarations):
    """Names of macros and enumerators."""
    names = MACRO.findall(declarations)
    for kind, body in BLOCK.findall(declarations):
        if kind == "enum":
            names += [item.split("=")[0].strip() for item in body.split(",") if item.strip()]
    return names


def functions(declarations):
    """(result, name, parameters) of each function, in C."""
    for statement in MACRO.sub("", BLOCK.sub("", declarations)).split(";"):
        found = re.fullmatch(r"(.*?)(\w+)\((.*)\)", " ".join(statement.split()))
        if found:
            yield found[1].strip(), found[2], parameters(found[3])


def parameters(text):
    """(type, name) of each parameter."""
    if text == "void":
        return []
    # Commas within the parameters of a function pointer separate nothing here.
    found = (re.fullmatch(r"(.*?)(\w+)(?: ?\[.*\]|\)\(.*\))?", p.strip()) for p in re.split(r",(?![^(]*\))", text))
    return [(p[1] + "*" if p[0] != p[1] + p[2] else p[1], p[2]) for p in found]


def python_type(c):
    """The type in Python of a type in C."""
    if "*" in c:
        return "_Pointer"
    words = c.split()
    names = {"bool": "bool", "double": "float", "float": "float", "void": "None"}
    return names.get(words[-1], "int")


def stub(declarations):
    """The text of the stub."""
    lines = [f"    {name}: int" for name in constants(declarations)]
    for result, name, given in functions(declarations):
        words = [f"{what}_" if keyword.iskeyword(what) else what for _, what in given]
        listed = [f"{word}: {python_type(c)}" for word, (c, _) in zip(words, given)]
        # Calls of functions in C have no keywords.
        lines.append(f"    def {name}({', '.join(['self', *listed, '/'])}) -> {python_type(result)}: ...")
    return HEAD + "\n".join(lines) + "\n\nlib: _Lib\n"
