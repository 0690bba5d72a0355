# SPDX-License-Identifier: MIT
"""Words that the project no longer uses, and what is written instead."""
import re

DOCS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
NOTES = "docs/notes/"  # laboratory notes quote what was measured when


def word(*alternatives):
    """A word by itself or a part of an identifier."""
    return re.compile(r"(?<![a-zA-Z])(?:%s)(?![a-zA-Z])" % "|".join(alternatives))


# Where they stand in comments, code, messages or documents.
ANYWHERE = (
    (word("kits?", "Kits?"), "context"),
    (word("mailbox(?:es)?"), "swap queue"),
    (word("keepers?"), "backend of spectra"),
    (word("tainted", "taints?"), "non-finite"),
    (word("crews?", "teams?"), "workers"),
    (re.compile(r"(?<![a-zA-Z#])bundle[sd]?(?![a-zA-Z])"), "block batch"),  # "#bundle" is a term of OSC
    (word("dealt", "deals? out", "dealing out"), "deinterleaved, distributed"),
    (word("hears", "hearing", "unheard"), "active input, depends on"),
    (word("ticks?"), "quantum"),
    (word("lesser", "common_divisor"), "min, gcd"),
    (word("MOST", "ENOUGH", "LEAST", "USUAL", "FEW", "MANY"), "MAX, MIN, TARGET, DEFAULT"),
)
# Where they name something in lib/, which is what code is without comments and strings; they are plain English besides.
NAMES = (
    (word("letters?"), "pending"),
    (word("poison", "poisons", "poisoned"), "non-finite"),
    (word("heard"), "active_inputs"),
    (word("deal", "deals"), "deinterleave"),
    (re.compile(r"\bgreater\s*\("), "max"),
    (word("at_most"), "min"),
    (re.compile(r"\bheldv?\s*\("), "keep_in_register"),
    (word("consider\\w*", "decide", "account"), "try_candidate, fill_estimate"),
    (word("turns?", "turned"), "rotate, transposed, iteration"),
    (word("quiet", "loud"), "silent"),
    (word("ways?"), "algorithm, direction, variant"),
    (word("pieces?"), "split, shard, micro-batch"),
    (word("rooms?"), "capacity"),
    (re.compile(r"(?<![A-Za-z])(?<!in_)places?(?![A-Za-z])"), "index, coordinates"),  # in_place is the field's word
    (word("cuts?"), "split, layout, carve"),
    (word("like"), "compatible_with"),
)


def documents(tree):
    """Text that users and contributors read: path, text."""
    paths = [tree.root / d for d in DOCS] + sorted((tree.root / "docs").rglob("*.md"))
    for path in paths:
        relative = str(path.relative_to(tree.root))
        if path.is_file() and not relative.startswith(NOTES):
            yield relative, path.read_text(encoding="utf-8")


def hits(path, text, table):
    for pattern, better in table:
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1} {match.group()} -> {better}"


def old_words(tree):
    found = [hit for path, text in documents(tree) for hit in hits(path, text, ANYWHERE)]
    for file in tree.files:
        found += hits(file.path, file.text, ANYWHERE)
        if file.path.parts[0] in ("lib", "design"):
            found += hits(file.path, file.code, NAMES)
    return found
