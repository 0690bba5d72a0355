# SPDX-License-Identifier: MIT
"""Which folder of lib/ may include which, and circles among the folders of a tree."""

# The floors of lib/. A file includes its own folder and lower floors.
FLOORS = {"base": 1, "kernels": 2, "fft": 3, "core": 4, "design": 4, "geometry": 5, "stream": 6, "cpu": 7, "cuda": 7,
          "planner": 8, "api": 9}
# Floor 7 is one folder an engine, which another engine does not include; engines of one device share these, which
# include one another downwards: a later one earlier ones.
SHARED = {"cpu": ("conv",), "cuda": ("kernels", "gpu", "device")}


def parts_of(folder):
    """Floor's name and engine of a folder of lib/, None where there is no such folder. lib/cuda itself is the module:
    it lists the engines of its device."""
    name, _, engine = folder.removeprefix("lib/").partition("/")
    on_device = name in SHARED
    if name not in FLOORS or "/" in engine or (engine and not on_device) or (name == "cpu" and not engine):
        return None
    return name, engine


def allowed(start, end):
    """Whether a file of folder `start` of lib/ may include one of folder `end`."""
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


def arrows(tree):
    """Includes within lib/ that go up or sideways, and those of which nobody knows where they go."""
    found = []
    for file in tree.under("lib"):
        for line, name, path in tree.includes(file):
            if path is None:
                found.append(f'{file.path}:{line} -> "{name}", which is nowhere')
            elif not path.startswith("lib/"):
                found.append(f"{file.path}:{line} -> {path}")
            elif not allowed(file.folder, path.rpartition("/")[0]):
                found.append(f"{file.path}:{line} -> {path}")
    return found


def edges_of(tree):
    """Folder -> folder -> one include that goes this way."""
    edges = {}
    for file in tree.files:
        for _, _, path in tree.includes(file):
            folder = path.rpartition("/")[0] if path else file.folder
            if folder != file.folder:
                edges.setdefault(file.folder, {}).setdefault(folder, f"{file.path} -> {path}")
    return edges


def reachable(edges, start):
    seen, waiting = set(), [start]
    while waiting:
        for folder in edges.get(waiting.pop(), {}):
            if folder not in seen:
                seen.add(folder)
                waiting.append(folder)
    return seen


def circles(tree):
    """Folders that reach each other, circle by circle, with the includes between them."""
    edges = edges_of(tree)
    reach = {folder: reachable(edges, folder) for folder in edges}
    found, done = [], set()
    for folder in sorted(edges):
        circle = sorted(f for f in reach[folder] if folder in reach.get(f, ()))
        if not circle or folder in done:
            continue
        done.update(circle)
        ways = [edges[a][b] for a in circle for b in circle if b in edges.get(a, {})]
        found.append(" <-> ".join(circle) + ": " + ", ".join(ways))
    return found
