# SPDX-License-Identifier: MIT
"""Includes and calls: which way they may go between folders of the library, and circles of folders and of files."""
import collections
import re

LIBRARY = ("lib", "design")
# The floors of lib/. A file includes, and calls, its own folder and lower floors. design/ is a library beside lib/ that
# the public functions call: it may include what a folder of its floor may.
FLOORS = {"base": 1, "kernels": 2, "fft": 3, "core": 4, "design": 4, "geometry": 5, "product": 5, "stream": 6, "layer": 6,
          "cpu": 7, "cuda": 7, "planner": 8, "api": 9, "adaptive": 10, "bank": 10, "sequence": 10, "correction": 10, "equalizer": 10}
# Floor 7 is one folder an engine, which another engine does not include; engines of one device share these, which
# include one another downwards: a later one earlier ones.
SHARED = {"cpu": ("conv",), "cuda": ("kernels", "gpu", "device", "layer")}
CALL = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)\s*\(")


def parts_of(folder):
    """Floor's name and engine of a folder of lib/, None where there is no such folder. lib/cuda itself is the module:
    it lists the engines of its device."""
    name, _, engine = folder.removeprefix("lib/").removeprefix("design/").partition("/")
    on_device = name in SHARED
    if name not in FLOORS or "/" in engine or (engine and not on_device) or (name == "cpu" and not engine):
        return None
    return name, engine


def allowed(start, end):
    """Whether a file of folder `start` of lib/ may include or call one of folder `end`."""
    if start == end:
        return True
    a, b = parts_of(start), parts_of(end)
    if a is None or b is None:
        return False
    if a[0] != b[0]:
        return FLOORS[a[0]] > FLOORS[b[0]]
    shared = SHARED[a[0]]
    if not a[1] or not b[1]:
        return not a[1]
    return b[1] in shared and (a[1] not in shared or shared.index(a[1]) > shared.index(b[1]))


def folder_of(path):
    return path.rpartition("/")[0]


def arrows(tree):
    """Includes within lib/ and design/ that go up or sideways, and those whose file is unknown."""
    found = []
    for file in tree.under(*LIBRARY):
        for line, name, path in tree.includes(file):
            if path is None:
                found.append(f'{file.path}:{line} -> "{name}", which is nowhere')
            elif path.partition("/")[0] not in LIBRARY or not allowed(file.folder, folder_of(path)):
                found.append(f"{file.path}:{line} -> {path}")
    return found


def calls_up(tree):
    """Calls within lib/ and design/ that go up or sideways."""
    return sorted(text for start, ends in calls(tree).items() for end, text in ends.items()
                  if not allowed(folder_of(start), folder_of(end)))


def calls(tree):
    """File -> other file -> a call that goes this way. Functions that no header declares, that a header defines or that
    several files define are not called from elsewhere; calls by pointers are not seen."""
    declared = {name for f in tree.under(*LIBRARY, "include") if f.path.suffix in (".h", ".cuh") for name in CALL.findall(f.code)}
    functions = tree.functions(*LIBRARY)
    places = collections.defaultdict(set)
    for f in functions:
        places[f.name].add(str(f.file.path))
    ends = {name: min(paths) for name, paths in places.items()
            if name in declared and len(paths) == 1 and not min(paths).endswith((".h", ".cuh"))}
    edges = collections.defaultdict(dict)
    for f in functions:
        start = str(f.file.path)
        for name in CALL.findall(f.body()):
            if ends.get(name, start) != start:
                edges[start].setdefault(ends[name], f"{f.place()} -> {ends[name]} {name}")
    return edges


def folder_edges(tree):
    """Folder -> folder -> one include that goes this way."""
    edges = collections.defaultdict(dict)
    for file in tree.files:
        for _, _, path in tree.includes(file):
            if path and folder_of(path) != file.folder:
                edges[file.folder].setdefault(folder_of(path), f"{file.path} -> {path}")
    return edges


def circles(tree):
    return rings_of(folder_edges(tree))


def call_circles(tree):
    return rings_of(calls(tree))


def reachable(edges, start):
    seen, waiting = set(), [start]
    while waiting:
        new = edges.get(waiting.pop(), {}).keys() - seen
        seen |= new
        waiting += new
    return seen


def rings_of(edges):
    """Nodes that reach each other, circle by circle, with the edges between them."""
    reach = {node: reachable(edges, node) for node in edges}
    rings = {frozenset(n for n in reach[node] if node in reach.get(n, ())) for node in edges}
    return sorted(" <-> ".join(sorted(ring)) + ": " + ", ".join(edges[a][b] for a in sorted(ring) for b in sorted(ring)
                                                                if b in edges[a]) for ring in rings if ring)
