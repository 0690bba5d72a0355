#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes docs/seeds.md and its pictures: the algorithms, tables and figures of the texts with which Partita began, where
Partita has them, and what it measured. bench/seeds/ has the text of the page and the figures that it cites.

    seeds.py             writes the page and its pictures
    seeds.py --check     prints what is wrong: names of engines, options or tests that do not exist, a page that is old

A line of bench/seeds/algorithms.csv has names in `where` that must exist (NAMES has their forms), tests as docs/faults.md
names them, and a state: nothing (present), device, replaced (with the reason), or absent. Only absent lines need no names.
"""
import csv
import functools
import math
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import seeds_chart  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import house_text  # noqa: E402

ROWS = ("layer", "network", "signal", "seeds")  # files of docs/bench that the page uses
IM2COL, PW_SIMPLE, ONEDNN, TILES, AUTO = ("openblas",), ("pw-simple",), ("onednn", "onednn-winograd"), ("cpu/tiles",), ("auto",)
# Names that must exist: their form, the files, and what stands there. Other names are those of files.
NAMES = (
    (r"bench:(.+)", "bench/*/*.c", r'"{0}"'),
    (r"((?:cpu|cuda)/[\w-]+)", "lib/c*/*/*.c", r'\.name = "{0}"'),
    (r"((?:cpu|cuda)/[\w-]+):([\w-]+)", "lib/c*/*/*.c", r'"{1}"(?s:.*)\.name = "{0}"|\.name = "{0}"(?s:.*)"{1}"'),
    (r"(options|parts|problem|call)\.(\w+)", "include/partita/*.h", r"struct partita_{0} \{{[^}}]*\b{1}\b(\[\w+\])?[;,]"),
    (r"--([\w-]+)", "apps/cli/options/*.inc", r'"{0}"'),
    (r"(partita_\w+)", "include/partita/*.h", r"\b{0}(_sized)?\("),
    (r"partita\.(?:\w+\.)*(\w+)", "python/partita/**/*.py", r"\b(?:def|class) {0}\b"))


def read(root, name, folder="bench/seeds"):
    with (pathlib.Path(root) / folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.lru_cache
def texts_of(root, pattern):
    """The texts of files, headers without comments."""
    texts = [(path.suffix, path.read_text(encoding="utf-8")) for path in sorted(pathlib.Path(root).glob(pattern))]
    return [re.sub(r"//.*", "", text) if suffix == ".h" else text for suffix, text in texts]


def exists(root, name):
    for form, files, there in NAMES:
        found = re.fullmatch(form, name)
        if found:
            pattern = there.format(*map(re.escape, found.groups()))
            return any(re.search(pattern, text) for text in texts_of(root, files))
    return pathlib.Path(root, name).is_file()


def test_exists(root, name):
    test, _, case = name.partition("/")
    folder, test = ("python/tests", test.removeprefix("python-")) if test.startswith("python-") else ("tests", test)
    text = house_text.source_of(pathlib.Path(root, folder), test.removesuffix("-hostdev"))
    if text is None:
        return (pathlib.Path(root) / test / case).is_file()  # a script that Meson runs where it stands
    for header in re.findall(r'#include "(\w+\.h)"', text):  # of the same folder, which may have the names of cases
        text += "".join(texts_of(root, f"{folder}/*/{header}"))
    return not case or house_text.has_case(text, case)


def wrong_names(root):
    for line in read(root, "algorithms"):
        where, tests, state = line["where"].split(), line["tests"].split(", ") * bool(line["tests"]), line["state"].partition(":")[0]
        missing = [name for name in where if not exists(root, name)] + [name for name in tests if not test_exists(root, name)]
        if state not in ("", "device", "replaced", "absent"):
            yield f"{line['algorithm']}: unknown state {state}"
        elif state == "absent" and where and not missing:
            yield f"{line['algorithm']}: is not absent: all of its names exist"
        elif state != "absent" and (missing or not where or not tests):
            yield f"{line['algorithm']}: no {', '.join(missing) or ('tests' if where else 'names')}"


class Rows:
    """Rows of docs/bench, and of their layers the multiply-adds of the direct sums of one image."""

    def __init__(self, root):
        self.root = root
        self.ns = {(row["case"], row["contender"], int(row["threads"])): float(row["ns_per_item"])
                   for name in ROWS for row in read(root, name, "docs/bench")}
        self.terms, self.depths = {}, {}
        for row in read(root, "layers"):
            name, (depth, channels, size, kernel, outputs, groups, stride, pad) = row.pop("layer"), map(int, row.values())
            self.terms[name] = channels // groups * outputs * kernel**2 * ((size + 2 * pad - kernel) // stride + 1)**2
            if name.startswith("vgg"):
                self.depths[name] = depth  # in network E
        self.terms |= {f"thesis-4.5-r{r}": 3 * 96 * r**2 * (228 - r)**2 for r in range(11, 30, 2)}
        self.terms |= {f"thesis-4.6-r{r}": 96 * 256 * r**2 * (56 - r)**2 for r in range(1, 40, 2)}

    def per_term(self, case, contenders):
        """The least time of a multiply-add in ns on one thread; None if no contender was measured."""
        return min((self.ns[case, name, 1] for name in contenders if (case, name, 1) in self.ns), default=None)

    def times(self, layer, keys, batch, standard=None, direction="forward"):
        """The times of a call in ms by the contenders of each key, and its images: `batch`, or the standard number if that
        was not measured. im2col and pw-simple take image by image, so their times with the standard number tell others."""
        cases = [(f"{layer}-n{batch}-{direction}", batch), (f"{layer}-{direction}", standard or batch)]
        case, images = next((pair for pair in cases if self.per_term(pair[0], AUTO)), cases[1])
        others = {IM2COL: cases[1][0], PW_SIMPLE: f"{layer}-n{standard}-{direction}"}
        found = [self.per_term(case, key) or self.per_term(others.get(key), key) for key in keys]
        return [ns and 1e-6 * ns * images * self.terms[layer] for ns in found], images


def figure(value, unit=""):
    return "not measured" if value is None else (f"{value:.0f}" if value >= 1000 else f"{value:.3g}") + unit


def spaced(number):
    return f"{number:,}".replace(",", " ")


def speedup(rival, method):
    return "" if rival is None or method is None else figure(float(rival) / float(method), "x")


# Lines of the tables, by their names in page.md.in.

def algorithms(rows, source):
    for line in read(rows.root, "algorithms"):
        if line["source"] == source:
            yield (line["algorithm"], " ".join(f"`{name}`" for name in line["where"].split()), line["tests"], line["state"] or "present")


EXAMPLE = {"N": 1000000, "M": 1025, "L": 4096, "K": 2}


def filters(rows):
    ours = {row["engine"]: row for row in read(rows.root, "work", "docs/bench") if row["problem"] == "1000000-x-1025"}
    for row in read(rows.root, "filters"):
        cells = [row["property"]]
        for method, engine in (("discard", "cpu/overlap-save"), ("add", "cpu/overlap-add:steps")):
            count = int(ours[engine].get(row["partita"], 0)) // (4 if row["partita"] == "workspace" else 1)  # elements of 4 bytes
            cells += [row[method], spaced(eval(row[method + "_figure"], {}, EXAMPLE)), spaced(count) if count else ""]
        yield cells


def divisions(rows):
    for row in read(rows.root, "work", "docs/bench"):
        if row["engine"].startswith("cpu/blocks"):
            yield (f"`{row['problem']}`", f"`{row['engine']}`", *(spaced(int(n)) for n in list(row.values())[2:]))


METHODS = ("cpu/overlap-save", "cpu/overlap-add", "cpu/overlap-add:steps", "cpu/overlap-add:4-steps", "cpu/blocks:divisions",
           "cpu/blocks:private-divisions")


def methods(rows):
    """Times of a sample in ns, on one thread and on two, of each of METHODS that computes a case."""
    for case in ("long-10M-x-64", "long-10M-x-1024", "parts-19x152-of-12464-x-6232", "parts-16384x49152-of-1M-x-1M"):
        times = [[rows.ns.get((case, name, threads)) for threads in (1, 2)] for name in METHODS]
        yield (f"`{case}`", *("" if None in pair else f"{pair[0]:.3g}, {pair[1]:.3g}" for pair in times))


def caffenet(rows, name, direction):
    """Layers of CaffeNet with 400 images, or 32, and their sum."""
    theirs = read(rows.root, name)
    ours = [rows.times(f"caffenet-{i}", (PW_SIMPLE, IM2COL, TILES, AUTO), 400, 32, direction) for i in range(1, len(theirs))]
    for times, _ in ours:
        times[0] = times[0] or times[1]  # the first layer, as in the thesis
    ours.append((list(map(sum, zip(*(times for times, _ in ours)))), ours[-1][1]))
    for row, (times, images) in zip(theirs, ours):
        yield (*row.values(), speedup(row["caffe"], row["fft_cgemm"]), images, *map(figure, times), speedup(times[1], times[3]))


def costs(rows):
    """Forward's memory of 500 images in MB of 2^20 bytes, theirs out of place and in place, and ours on one thread; and the
    millions of operations of an image by the formulas of section 2.8, and by our plan."""
    in_place = {row["layer"]: row["left_in_place"] for row in read(rows.root, "thesis-3.4")}
    edges = {row["layer"]: int(row["fft_size"]) for row in read(rows.root, "thesis-3.1")}
    plans = [row for row in read(rows.root, "memory", "docs/bench") if row["direction"] == "forward"]
    layers = [[int(n) for n in list(row.values())[2:]] for row in read(rows.root, "layers") if row["layer"].startswith("caffenet")]
    sums = [0] * 5

    def strassen(m, n, k):
        return min(m, n, k)**math.log2(7 / 8) * m * n * k
    for row, plan, (c, size, kernel, outputs, groups, stride, pad) in zip(read(rows.root, "thesis-3.2"), plans, layers):
        edge, out = edges[row["layer"]], (size + 2 * pad - kernel) // stride + 1
        bins, terms = edge * (edge // 2 + 1), c * kernel**2
        transforms = 2.5 * bins * math.log2(bins) * (c + outputs) + outputs * out**2
        found = [(int(plan["filter"]) + int(plan["workspace"])) / 2**20,
                 1e-6 * (((size + 2 * pad - kernel) / (stride + 1))**2 * terms + 2 * groups * strassen(outputs / groups, out**2, terms / groups)),
                 1e-6 * (transforms + 8 * outputs * c / groups * bins),
                 1e-6 * (transforms + 8 * bins * groups * strassen(500, outputs, c / groups) / 500), 1e-6 * float(plan["operations"]) / 500]
        sums = [total + n for total, n in zip(sums, found)]
        yield row["layer"], row["sum"], in_place.get(row["layer"], ""), *map(figure, found)
    yield "sum", read(rows.root, "thesis-3.2")[-1]["sum"], in_place["sum"], *map(figure, sums)


def forward(rows):
    sizes = {row["layer"]: row["fft_size"] for row in read(rows.root, "thesis-3.1")}
    chosen = {row["case"]: f"{row['engine']}, {row['transform']}" for row in read(rows.root, "choices-avx512", "tests/plan")}
    for line in caffenet(rows, "thesis-4.1", "forward"):
        engine = chosen.get(f"caffenet-{line[0][-1]}-n{line[6]}-forward", "")
        yield (line[0], sizes.get(line[0], ""), *line[1:6], engine, *line[6:])


def gradient(rows):
    return caffenet(rows, "thesis-4.4", "backward-weight")


def text(rows):
    sums = [list(caffenet(rows, *table))[-1][-1] for table in (("thesis-4.1", "forward"), ("thesis-4.4", "backward-weight"))]
    simple = list(caffenet(rows, "thesis-4.1", "forward"))[-1]
    trained = speedup(*(rows.ns.get(("caffenet-train", name, 1)) for name in ("torch", "auto")))
    ours = (f"{speedup(simple[8], simple[7])} over im2col, pw-simple", f"{sums[0]} over im2col",
            "the same: transforms are in place", f"{sums[1]} over im2col",
            f"{trained} over PyTorch, a training step of the convolutions")
    return [(row["figure"], speedup(row["caffe"], row["fft"]), cell) for row, cell in zip(read(rows.root, "thesis-text"), ours)]


IMAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 400)


def by_images(rows, layers):
    """Speed-ups of auto over im2col for the sum of some layers of CaffeNet, for each of IMAGES; None: not measured."""
    for n in IMAGES:
        times = [rows.times(f"caffenet-{i}", (IM2COL, AUTO), n, 32) for i in layers]
        yield sum(t[0] for t, _ in times) / sum(t[1] for t, _ in times) if all(images == n for _, images in times) else None


def batches(rows):
    """Figures 4.4 and 4.5: the highest speed-ups, and their numbers of images."""
    for row in read(rows.root, "thesis-4.5-figure"):
        speeds = by_images(rows, row["layer"].replace("conv", "").replace("pass", "12345"))
        best = max((speed, n) for speed, n in zip(speeds, IMAGES) if speed)
        yield row["layer"], row["speedup"] + "x", row["batch"], figure(best[0], "x"), best[1]


SWEEPS = {"4.5": (50, 2), "4.6": (200, 4)}  # images of the thesis, and of standard rows


def sweep(rows, name):
    """r, their FFT, their Caffe, ours, oneDNN, and our images, for each size of the kernel."""
    for row in read(rows.root, f"thesis-{name}"):
        times, images = rows.times(f"thesis-{name}-r{row['kernel']}", (AUTO, ONEDNN), *SWEEPS[name])
        yield int(row["kernel"]), float(row["fft_cgemm"]), float(row["caffe"]), *times, images


def sweeps(rows):
    cells = [{r: (*map(figure, (fft, caffe)), speedup(caffe, fft), *map(figure, (ours, best)), speedup(best, ours))
              for r, fft, caffe, ours, best, _ in sweep(rows, name)} for name in SWEEPS]
    return [(r, *cells[0].get(r, [""] * 6), *line) for r, line in cells[1].items()]


def images(rows, name):
    return str(next(sweep(rows, name))[-1])


def theano(rows):
    for row in read(rows.root, "dieleman"):
        standard = row.pop("standard")
        times, images = rows.times("dieleman-" + row["row"], (IM2COL, ONEDNN, AUTO), int(row["input"].split(",")[0]), int(standard))
        yield (*list(row.values())[1:], speedup(row["cuda_convnet"], row["fft"]), images, *map(figure, times), speedup(*times[1:]))


def complexity(rows):
    """Tables 1 and 2: a figure of the text, and that of Partita behind a slash, for taps of 3 x 3."""
    names = ("multiply", "data", "filter", "inverse")
    ours = {(row["algorithm"].replace("direct", "winograd"), row["tile"]): [row[name] for name in names]
            for row in read(rows.root, "winograd", "docs/bench") if row["taps"] == "3"}
    winograd = {row["tile"]: list(row.values())[1:] for row in read(rows.root, "lavin-1")}
    fast = {row["tile"]: list(row.values())[1:] for row in read(rows.root, "lavin-2")}
    for tile in sorted({tile for _, tile in ours}, key=int):
        theirs = winograd.get(tile, [""] * 6) + fast.get(tile, [""] * 4)
        found = [ours.get((name, tile), [""] * 4)[:n] for name, n in (("winograd", 4), ("fft", 2), ("fft-gauss", 4))]
        yield (tile, *(f"{a or '-'} / {float(b):.2f}" if b else a for a, b in zip(theirs, sum(found, []))))


def accuracy(rows):
    errors = {(row["layer"], row["engine"], row["tile"]): float(row["largest_error"]) for row in read(rows.root, "accuracy", "docs/bench")}
    for row in read(rows.root, "lavin-4"):
        layer = "vgg-" + row["layer"]
        half = max(error for (case, *_), error in errors.items() if case == layer + "-f16")
        yield (*row.values(), *(f"{error:.2E}" for error in (*(errors[layer, *key] for key in (
            ("cpu/direct", "0"), ("cpu/winograd", "4"), ("cpu/winograd", "6"), ("cpu/tiles", "16"))), half)))


def network(rows):
    """The layers of network E, each as often as the network has it; the last two figures are of f16."""
    for row in read(rows.root, "lavin-5"):
        cells, sums = list(row.values()), []
        for case, key in (("{}-n{}", ONEDNN), ("{}-n{}", AUTO), ("{}-n{}-f16", AUTO)):
            times = [(rows.per_term(case.format(layer, row["batch"]) + "-forward", key), depth * rows.terms[layer] * int(row["batch"]))
                     for layer, depth in rows.depths.items()]
            sums.append(None if any(ns is None for ns, _ in times) else 1e-6 * sum(ns * n for ns, n in times))
        yield (*cells[:3], speedup(*cells[1:3]), *cells[3:], speedup(*cells[3:]), *map(figure, sums[:2]), speedup(*sums[:2]),
               figure(sums[2]), speedup(*sums[1:]))


def example(_):
    return ", ".join(f"{name} = {value}" for name, value in EXAMPLE.items())


def run(rows, name):
    return next(re.split("[,;]", row["value"])[0] for row in read(rows.root, "run", "docs/bench") if row["name"] == name)


PARTS = {part.__name__: part for part in (algorithms, filters, methods, divisions, forward, costs, gradient, text, sweeps, images, theano, complexity, batches,
                                          accuracy, network, example, run)}


def page(rows):
    """page.md.in with the part that each {{NAME ARGUMENT}} names: words, or lines of a table."""
    def part(match):
        name, *argument = match[1].split(" ", 1)
        found = PARTS[name](rows, *argument)
        return found if isinstance(found, str) else "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in found)
    return re.sub(r"\{\{(.*?)\}\}", part, (pathlib.Path(rows.root) / "bench/seeds/page.md.in").read_text(encoding="utf-8"))


def pictures(rows):
    """The pictures by name."""
    yield "sweep-4.4.svg", seeds_chart.curves(
        "Figures 4.4 and 4.5: forward of CaffeNet on one thread, speed-up over im2col", "images", IMAGES,
        {name: list(by_images(rows, layers)) for name, layers in (("all layers", "12345"), *((f"conv{i}", i) for i in "2345"))})
    for name, layer in zip(SWEEPS, ("3 channels of 227 x 227 to 96", "96 channels of 55 x 55 to 256")):
        kernels, *series, counts = zip(*sweep(rows, name))
        names = ("FFT in Caffe, GPU", "Caffe, GPU", "Partita, one thread", "oneDNN, one thread")
        yield f"sweep-{name}.svg", seeds_chart.curves(
            f"Table {name}: forward of {layer}, ms for an image", "r, of kernels of r x r", kernels,
            {label: [ms and ms / (SWEEPS[name][0] if "GPU" in label else n) for ms, n in zip(values, counts)]
             for label, values in zip(names, series)})
    speeds = {f"{label}, {n} image{'s' * (n > 1)}": [2 / (rows.per_term(f"{layer}-n{n}-forward", key) or float("inf")) for layer in rows.depths]
              for n in (1, 16) for label, key in (("Partita", AUTO), ("oneDNN", ONEDNN))}
    yield "layers-of-network-e.svg", seeds_chart.bars(
        "Forward of the layers of network E, one thread, effective GFLOP/s", "layer; two operations for each multiply-add of the "
        "direct sums", [layer.removeprefix("vgg-") for layer in rows.depths], speeds, 100)


def outputs(root):
    """The page and its pictures: path, text."""
    rows = Rows(root)
    return {"docs/seeds.md": page(rows)} | {f"docs/images/{name}": picture for name, picture in pictures(rows)}


def problems(root):
    """What --check prints."""
    yield from wrong_names(root)
    for path, written in outputs(root).items():
        file = pathlib.Path(root, path)
        if not file.is_file() or file.read_text(encoding="utf-8") != written:
            yield f"{path}: is old: python3 bench/seeds.py writes it"


def main():
    if sys.argv[1:] == ["--check"]:
        found = list(problems(ROOT))
        print(*found, sep="\n", end="\n" * bool(found))
        return bool(found)
    if sys.argv[1:]:
        sys.exit("usage: seeds.py [--check]")
    for path, written in outputs(ROOT).items():
        (ROOT / path).write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
