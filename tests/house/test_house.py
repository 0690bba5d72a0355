#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Holds tools/house.py to small trees that break one rule each, and to others that only look like it. TAP.
Usage: test_house.py ROOT (of the sources)."""
import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import house  # noqa: E402
import house_source  # noqa: E402

HAS_CTAGS = shutil.which("ctags") and b"Universal" in subprocess.check_output(["ctags", "--version"])


def write(folder, files):
    for path, text in files.items():
        file = pathlib.Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


class TreeTest(unittest.TestCase):
    def measure(self, name, files):
        """One measure of a tree of these files: path, text."""
        with tempfile.TemporaryDirectory() as folder:
            write(folder, files)
            pathlib.Path(folder, "lib").mkdir(exist_ok=True)
            return house.measure(name, house_source.Tree(folder))

    def found(self, name, files):
        return self.measure(name, files)[1]

    def code(self, name, text):
        """Lines of one file that a measure finds fault with."""
        return [int(o.split(":")[1].split(" ")[0]) for o in self.found(name, {"lib/base/cost.c": text})]


class Arrows(TreeTest):
    def arrow(self, start, end):
        return self.found("arrows", {start: f'#include "{end}"\n', f"lib/{end}": ""})

    def test_allowed(self):
        for start, end in (("core/a.c", "base/b.h"), ("api/a.c", "planner/b.h"), ("cpu/gemm/a.c", "cpu/gemm/b.h"),
                           ("cpu/gemm/a.c", "cpu/conv/b.h"), ("cpu/gemm/a.c", "kernels/b.h"),
                           ("cuda/tiles/a.cu", "cuda/kernels/b.cuh"), ("cuda/tiles/a.c", "cuda/device/b.h"),
                           ("cuda/device/a.c", "cuda/kernels/b.h"), ("cuda/module.c", "cuda/tiles/b.h"),
                           ("planner/a.c", "cpu/gemm/b.h")):
            self.assertEqual(self.arrow(f"lib/{start}", end), [], f"{start} -> {end}")

    def test_forbidden(self):
        for start, end in (("base/a.c", "core/b.h"), ("core/a.h", "stream/b.h"), ("geometry/a.c", "stream/b.h"),
                           ("cpu/gemm/a.c", "cpu/direct/b.h"), ("cpu/conv/a.c", "cpu/gemm/b.h"),
                           ("cuda/tiles/a.c", "cpu/tiles/b.h"), ("cuda/device/a.c", "cuda/tiles/b.h"),
                           ("cuda/kernels/a.cu", "cuda/device/b.h"), ("cuda/tiles/a.c", "cuda/module.h"),
                           ("kernels/a.c", "fft/b.h"), ("fft/a.h", "core/b.h"), ("planner/a.c", "api/b.h"),
                           ("stream/a.c", "nowhere/b.h"), ("nowhere/a.c", "base/b.h"), ("base/a.c", "b.h")):
            self.assertEqual(self.arrow(f"lib/{start}", end), [f"lib/{start}:1 -> lib/{end}"])

    def test_beside_the_file_first(self):
        self.assertEqual(self.found("arrows", {"lib/core/a.c": '#  include "b.h"\n', "lib/core/b.h": ""}), [])

    def test_design(self):
        """It lies beside lib/, and the public functions include it."""
        files = {"design/a.c": '#include "fft/b.h"\n', "lib/fft/b.h": "",
                 "lib/api/a.c": '#include "design/a.h"\n', "design/a.h": ""}
        self.assertEqual(self.found("arrows", files), [])
        files = {"design/a.c": '#include "core/b.h"\n', "lib/core/b.h": "",
                 "lib/core/a.c": '#include "design/a.h"\n', "design/a.h": ""}
        self.assertEqual(self.found("arrows", files),
                         ["design/a.c:1 -> lib/core/b.h", "lib/core/a.c:1 -> design/a.h"])

    def test_nowhere(self):
        self.assertEqual(self.found("arrows", {"lib/core/a.c": '\n#include "b.h"\n'}),
                         ['lib/core/a.c:2 -> "b.h", which is nowhere'])

    def test_outside(self):
        files = {"lib/core/a.c": '#include "../../apps/b.h"\n', "apps/b.h": ""}
        self.assertEqual(self.found("arrows", files), ["lib/core/a.c:1 -> apps/b.h"])


class Circles(TreeTest):
    def test_between_folders(self):
        for top in ("lib", "apps", "bench", "tests"):
            files = {f"{top}/x/a.h": '#include "y/b.h"\n', f"{top}/y/b.h": "", f"{top}/y/c.c": '#include "z/d.h"\n',
                     f"{top}/z/d.h": "", f"{top}/z/e.c": '#include "x/a.h"\n', f"{top}/w/f.c": '#include "x/a.h"\n'}
            found = self.found("circles", files)
            self.assertEqual(len(found), 1)
            self.assertTrue(found[0].startswith(f"{top}/x <-> {top}/y <-> {top}/z: {top}/x/a.h -> {top}/y/b.h"))

    def test_none(self):
        files = {"lib/x/a.h": '#include "y/b.h"\n#include "c.h"\n', "lib/x/c.h": '#include "a.h"\n', "lib/y/b.h": ""}
        self.assertEqual(self.found("circles", files), [])

    def test_folder_that_the_build_names(self):
        files = {"tests/x/a.c": '#include "b.h"\n', "tests/y/b.h": "", "tests/y/c.c": '#include "x/d.h"\n',
                 "tests/x/d.h": ""}
        self.assertEqual(len(self.found("circles", files)), 1)


@unittest.skipUnless(HAS_CTAGS, "no Universal Ctags (universal-ctags)")
class Calls(TreeTest):
    HEADERS = {"lib/core/b.h": "void b(void);\nvoid c(void (*call)(int), int);\n", "include/partita/d.h": "void d(void);\n"}

    def function(self, name, *calls):
        return f"void {name}(void)\n{{\n" + "".join(f"    {c};\n" for c in calls) + "}\n"

    def test_up(self):
        files = self.HEADERS | {"lib/core/b.c": self.function("b"), "lib/api/d.c": self.function("d", "b()"),
                                "lib/base/a.c": self.function("a", "b()", "b()"), "lib/core/e.h": self.function("e", "d()")}
        self.assertEqual(self.found("calls_up", files),
                         ["lib/base/a.c:1 a -> lib/core/b.c b", "lib/core/e.h:1 e -> lib/api/d.c d"])

    def test_between_engines(self):
        files = {"lib/cpu/x/x.h": "void x(void);", "lib/cpu/x/x.c": self.function("x"), "lib/cpu/conv/c.c": self.function("c", "x()"),
                 "lib/cpu/y/y.c": self.function("y", "x()"), "lib/cuda/z/z.cu": self.function("z", "x()")}
        self.assertEqual([o.split(":")[0] for o in self.found("calls_up", files)],
                         ["lib/cpu/conv/c.c", "lib/cpu/y/y.c", "lib/cuda/z/z.cu"])

    def test_not_seen(self):
        # Members, comments and prototypes; names of no header, of a header's own function and of two files.
        for calls in (("p->b()", "p.b()", "// b()", '"b()"'), ("f = b",)):
            self.assertEqual(self.found("calls_up", self.HEADERS | {"lib/core/b.c": self.function("b"),
                                                                    "lib/base/a.c": "void b(void);\n" + self.function("a", *calls)}), [])
        for path, text in (("lib/core/b.c", self.function("e")), ("lib/core/e.h", self.function("e")),
                           ("lib/core/b.c", "#if A\n" + self.function("b") + "#endif\n")):
            files = self.HEADERS | {path: text, "lib/core/f.c": self.function("b"), "lib/base/a.c": self.function("a", "e()")}
            self.assertEqual(self.found("calls_up", files), [], path)
        files = self.HEADERS | {"lib/core/b.c": self.function("b"), "lib/core/f.c": self.function("b"), "lib/base/a.c": self.function("a", "b()")}
        self.assertEqual(self.found("calls_up", files), [])

    def test_circles(self):
        files = self.HEADERS | {"lib/core/b.c": self.function("b", "d()"), "lib/core/d.c": self.function("d", "c(0)"),
                                "lib/core/c.c": self.function("c", "b()"), "lib/core/a.c": self.function("a", "b()")}
        found = self.found("call_circles", files)
        self.assertEqual([o.split(":")[0] for o in found], ["lib/core/b.c <-> lib/core/c.c <-> lib/core/d.c"])
        self.assertIn("lib/core/b.c:1 b -> lib/core/d.c d", found[0])
        self.assertEqual(self.found("call_circles", files | {"lib/core/c.c": self.function("c", "c(0)")}), [])


class Limits(unittest.TestCase):
    def git(self, *command):
        done = subprocess.run(["git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@b", *command],
                              capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, lines, least):
        write(self.folder, {"tools/house.py": f'LIMITS = {{\n    "lines_cpu": ({lines}, "x"),\n    "assert_share": ({least}, "y"),\n}}\n'})
        self.git("add", ".")
        self.git("commit", "-q", "-m", "a")
        return self.git("rev-parse", "HEAD")

    def raised(self, since, lines, least):
        limits = {"lines_cpu": (lines, "x"), "assert_share": (least, "y"), "new": (3, "z")}
        return house.raised(house_source.Tree(self.folder), limits, since)

    def test_raised(self):
        with tempfile.TemporaryDirectory() as self.folder:
            self.git("init", "-q")
            self.commit(8, 4.9)
            since = self.commit(12, 4.5)
            self.assertEqual(self.raised(since, 12, 4.5), [])
            self.assertEqual(self.raised(since, 13, 4.4), ["assert_share: 4.4, and 4.5 before", "lines_cpu: 13, and 12 before"])
            self.commit(10, 4.5)
            self.commit(11, 4.6)
            self.assertEqual(self.raised(since, 10, 4.6), [])
            self.assertEqual(self.raised(since, 11, 4.5), ["assert_share: 4.5, and 4.6 before", "lines_cpu: 11, and 10 before"])
            self.assertRaises(FileNotFoundError, self.raised, "1" * 40, 99, 1)

    def test_without_history(self):
        with tempfile.TemporaryDirectory() as self.folder:
            self.assertRaises(FileNotFoundError, self.raised, "HEAD", 99, 1)


class Files(TreeTest):
    def test_folders(self):
        files = {f"apps/a{i}.{suffix}": "" for i, suffix in enumerate(("c", "h", "cu", "cuh") * 6 + ("c",))}
        files |= {"apps/meson.build": "", "apps/x/b.c": ""}
        self.assertEqual(self.found("folders", files), [])
        self.assertEqual(self.found("folders", files | {"apps/one_more.h": ""}), ["apps: 26 files"])

    def test_loose(self):
        files = {"lib/meson.build": "", "lib/a.c": "", "lib/x/b.c": ""}
        self.assertEqual(self.found("loose", files), ["lib/a.c", "lib/meson.build"])

    def test_prefixes(self):
        files = {"lib/cpu/winograd/winograd.c": "", "lib/cpu/winograd/winograd_run.c": "", "lib/fft/fftw.c": "",
                 "lib/kernels/fft_kernels.h": ""}
        self.assertEqual(self.found("prefixes", files), ["lib/cpu/winograd/winograd_run.c"])

    def test_columns(self):
        files = {"lib/a.c": "x" * 100 + "\n" + "y" * 101 + "\n", "apps/a.c": "z" * 101 + "\n",
                 "lib/b.cu": "\u00e9" * 100 + "\n\n"}
        self.assertEqual(self.found("columns", files), ["apps/a.c:1 101 columns", "lib/a.c:2 101 columns"])

    def test_lines(self):
        files = {"lib/x/a.c": "1\n2\n", "lib/y/b.h": "3\n", "lib/cuda/y/c.cuh": "4\n", "apps/c.c": "5\n"}
        self.assertEqual(self.measure("lines_cpu", files)[0], 3)
        self.assertEqual(self.measure("lines_cuda", files)[0], 1)

    def test_assert_share(self):
        text = "void f(void)\n{\n    assert(1);\n    static_assert(2, x);\n    _Static_assert(3, y);\n" \
               "    my_assert(4); // assert(5)\n    assert (6);\n}\n"
        self.assertAlmostEqual(self.measure("assert_share", {"lib/x/a.c": text, "apps/b.c": text})[0], 250)


@unittest.skipUnless(HAS_CTAGS, "no Universal Ctags (universal-ctags)")
class Functions(TreeTest):
    def test_shared_names(self):
        one = "static int run(int a)\n{\n    return a;\n}\nvoid %s(void)\n{\n}\n"
        files = {"lib/x/a.c": one % "a_begin", "lib/y/b.c": one % "b_begin", "apps/c.c": one % "a_begin"}
        measured = self.measure("shared_names", files)
        self.assertAlmostEqual(measured[0], 50)
        self.assertEqual(measured[1], ["2 x lib/x/a.c:1 run, lib/y/b.c:1 run"])

    def test_one_function(self):
        # Under #if; a prototype and a call; a kernel that is built for each type, and a function beside it.
        files = {"lib/x/a.h": "void run(void);\n#ifdef A\ninline int f(void) { return 1; }\n#else\n"
                              "inline int f(void) { return 2; }\n#endif\n",
                 "lib/x/a.c": "void run(void)\n{\n    other();\n}\n", "lib/x/b.c": "void KERNEL(fir)(int a)\n{\n}\n",
                 "lib/x/c.c": "void fir(void)\n{\n}\nvoid KERNEL(cmac)(int a)\n{\n}\n"}
        self.assertEqual(self.found("shared_names", files), [])

    def test_in_cuda(self):
        text = "template <typename T> __global__ void __launch_bounds__(64, 4) one_kernel(T *y)\n{\n}\n"
        self.assertEqual(len(self.found("shared_names", {"lib/x/a.cu": text, "lib/x/b.cuh": text})), 1)

    def test_parameters(self):
        six = "int a, int b[3], void (*c)(int, int, int), int d, int e, int f"
        text = f"static inline void fits({six})\n{{\n}}\n\nvoid KERNEL(more)({six},\n    int g) // (h, i)\n{{\n}}\n" \
               f"void prototype({six}, int g, int h);\nvoid none(void)\n{{\n    fits(1, 2, 3, 4, 5, 6, 7, 8);\n}}\n"
        self.assertEqual(self.found("parameters", {"lib/x/a.c": text}), ["7: lib/x/a.c:5 k_more"])
        text = "template <int A, int B> __device__ void f(pair<int, int> a, int b, int c, int d, int e, int f)\n{\n}\n" \
               "__global__ void __launch_bounds__(1, 2) g(int a, int b, int c, int d, int e, int f, int g)\n{\n}\n"
        self.assertEqual(self.found("parameters", {"lib/x/a.cu": text}), ["7: lib/x/a.cu:4 g"])

    def test_long_functions(self):
        text = "void f(void)\n{\n" + "    f();\n" * 77 + "}\nvoid g(void)\n{\n" + "    f();\n" * 78 + "}\n"
        self.assertEqual(self.found("long_functions", {"apps/a.c": text}), ["81: apps/a.c:81 g"])


class Code(TreeTest):
    def test_nested_conditionals(self):
        for text in ("x = a ? b : c ? d : e;", "x = a ? b ? c : d : e;", "x = a ? (b ? c : d) : e;",
                     "x = a ? b : f(1, c ? d : e);", "x = f(1, a ? b : c ? d : e);", "#define F(a) (a ? 1 : b ? 2 : 3)",
                     "x = a ? y[b ? 0 : 1] : e;", "x = a ? \"?\" : c ? ':' : '?';"):
            self.assertEqual(self.code("conditionals", "\n" + text), [2], text)
        self.assertEqual(self.code("conditionals", "x = a ? b\n    : c ? d\n    : e;"), [2])
        self.assertEqual(self.code("conditionals", "#define F(a) \\\n    (a ? 1 : b ? 2 : 3)"), [2])

    def test_single_conditionals(self):
        for text in ("x = a ? b : c; y = d ? e : f;", "f(a ? b : c, d ? e : f);", "int y[] = {a ? b : c, d ? e : f};",
                     "x = (a ? b : c) + (d ? e : f);", "x = a ? b : c; // d ? e : f ? g : h", 'f(a ? "b ? c : d" : e);',
                     "if (a ? b : c) {\n    x = d ? e : f;\n}", "for (i = a ? b : c; d ? e : f; i++) x = g ? h : i;",
                     "x = (a ? b : c) ? d : e;", "#define F(a) a ? 1 : 2\n#define G(a) a ? 1 : 2\nx = a ? 1 : 2;"):
            self.assertEqual(self.code("conditionals", text), [], text)


class Words(TreeTest):
    def test_old(self):
        for text in ("struct kit *a;", "// the kit of a call", "int conv_kit;", "enum { MOST_TAPS = 3 };", 'say("a tick");',
                     "// samples are dealt out", "int poisoned;"):
            self.assertEqual(self.code("words", text), [1], text)

    def test_names_alone(self):
        self.assertEqual(self.code("words", "// a piece of cake"), [])
        self.assertEqual(self.code("words", "\nint piece;"), [2])
        self.assertEqual(self.code("words", "int last_piece;"), [1])
        self.assertEqual(self.found("words", {"apps/a.c": "int piece;"}), [])

    def test_other_words(self):
        for text in ("kitten", "almost", "ticket", "steam", "int cutoff;", "UTMOST", "replace", "sways", "teamwork"):
            self.assertEqual(self.code("words", text), [], text)

    def test_empty_names(self):
        text = "int f(int own)\n{\n    struct walk w; // most of it\n    x.fresh = \"of\";\n    return owner + almost;\n}\n"
        self.assertEqual(self.code("names", text), [1, 3, 4])
        self.assertEqual(self.found("names", {"apps/a.c": "int of;"}), ["apps/a.c:1 of"])

    def test_what(self):
        text = "// What it does, and\n// what not; whatever.\nint what; /* a\nwhat */\nf(\"what\");\n"
        self.assertEqual(self.code("what", text), [1, 2, 4])
        self.assertEqual(self.found("what", {"apps/a.c": text}), [])

    def test_documents(self):
        files = {"README.md": "a\nmailbox\n", "docs/a.md": "crew", "docs/notes/b.md": "crew", "CHANGELOG.md": "kit"}
        self.assertEqual(self.found("words", files), ["README.md:2 mailbox -> swap queue", "docs/a.md:1 crew -> workers"])


class Links(TreeTest):
    FILES = {"docs/b.md": "# One, two\n\n## `c` of d\n\n```sh\n# three\n```\n", "docs/c.png": ""}

    def broken(self, text):
        return [o.split(" ", 1)[1] for o in self.found("links", self.FILES | {"docs/a.md": text})]

    def test_known(self):
        for text in ("[x](b.md)", "![x](c.png)", "[x](../docs/b.md#one-two)", "[x](b.md#c-of-d)", "# A\n[x](#a)", "[x](https://a.b/c)",
                     "[x](mailto:a@b.c)", "`[x](none.md)`", "    [x](none.md)", "```\n[x](none.md)\n```"):
            self.assertEqual(self.broken(text), [], text)

    def test_unknown(self):
        for text, reason in (("[x](none.md)", "none.md: no such file"), ("![x](none.png)", "none.png: no such file"),
                             ("[x](b.md#three)", "b.md#three: no such heading"), ("[x](#a)", "#a: no such heading"),
                             ("[x](../docs)", "../docs: a folder, not a file"), ("[two\nlines](e.md)", "e.md: no such file"),
                             ('[x](e.md "title")', "e.md: no such file")):
            self.assertEqual(self.broken(text), [reason], text)

    def test_place(self):
        self.assertEqual(self.found("links", {"README.md": "a\n\n[x](e.md)\n"}), ["README.md:3 e.md: no such file"])

    def test_other_folders(self):
        self.assertEqual(self.found("links", {"build-ci/a.md": "[x](e.md)", ".cache/a.md": "[x](e.md)"}), [])


class NamedTests(TreeTest):
    PAGE = "| no. | input | what happens | checked by |\n|---|---|---|---|\n| 1 | a | b | %s |\n"
    FILES = {"tests/apps/test_io.py": "class Wav:\n    def test_plain(self):\n", "tests/plan/test_io.c": '{"short-calls", f}'}

    def unknown(self, names):
        return [o.split(" ", 1)[1] for o in self.found("named_tests", self.FILES | {"docs/faults.md": self.PAGE % names})]

    def test_known(self):
        for names in ("", "io", "io/short-calls", "io/short", "io-hostdev", "apps-io", "apps-io/Wav", "apps-io/Wav.test_plain, io",
                      "apps-io/Wav, test_plain"):
            self.assertEqual(self.unknown(names), [], names)

    def test_unknown(self):
        for names in ("oi", "io/long-calls", "apps-oi", "apps-io/Flac", "apps-io/Wav.test_fancy", "apps-io/short-calls",
                      "apps-io/Wav, test_fancy"):
            self.assertEqual(self.unknown(names), [names.split(", ")[-1]], names)


class Program(unittest.TestCase):
    def run_on(self, files, *arguments, path=None):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, files)
            done = subprocess.run([sys.executable, str(ROOT / "tools/house.py"), *arguments, folder],
                                  capture_output=True, text=True, check=False, env=path and {"PATH": path})
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def test_status(self):
        good = {"lib/base/a.c": "void a(void)\n{\n    assert(1);\n}\n"}
        bad = good | {"lib/base/d.c": "int x = a ? b : c ? d : e;\n"}
        self.assertEqual(self.run_on(good)[0], 0)
        status, text = self.run_on(bad)
        self.assertEqual(status, 1)
        self.assertIn("conditionals: 1", text)
        self.assertIn("lib/base/d.c:1", text)
        status, text = self.run_on(bad, "--report")
        self.assertEqual(status, 0)
        self.assertIn("BEYOND  conditionals: 1", text)
        status, text = self.run_on(bad, "--tap")
        self.assertEqual(status, 1)
        self.assertEqual([line.split(" - ")[1][:13] for line in text.splitlines() if line.startswith("not ok")],
                         ["conditionals:"])
        self.assertEqual(self.run_on(bad, "--all", "conditionals"), (0, "lib/base/d.c:1\n"))

    def test_without_ctags(self):
        status, text = self.run_on({"lib/base/a.c": "void f(void)\n{\n}\n"}, "--tap", "--report", path="/nowhere")
        self.assertEqual(status, 0)
        self.assertEqual(text.count("# SKIP no Universal Ctags"), 5)
        self.assertIn("shared_names: not measured", self.run_on({"lib/base/a.c": ""}, "--report", path="/nowhere")[1])

    def test_limits_at_their_edges(self):
        asserts = {"lib/base/a.c": "assert(1);\n" * 9 + "\n" * 1991}
        self.assertNotIn("assert_share", self.run_on(asserts)[1])
        self.assertIn("assert_share: 4.5 ", self.run_on({"lib/base/a.c": asserts["lib/base/a.c"] + "\n"})[1])
        loose = {f"lib/{name}": "" for name in ("meson.build", "a.txt", "b.txt")}
        self.assertNotIn("loose", self.run_on(loose)[1])
        self.assertIn("loose: 4", self.run_on(loose | {"lib/c.txt": ""})[1])


def main():
    n_done = n_failed = 0
    for tests_of in (Arrows, Circles, Calls, Limits, Files, Functions, Code, Words, NamedTests, Program):
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(tests_of):
            result = unittest.TestResult()
            with contextlib.redirect_stdout(io.StringIO()):
                test.run(result)
            n_done += 1
            n_failed += not result.wasSuccessful()
            name = f"{tests_of.__name__.lower()}: " + test.id().split(".test_")[-1].replace("_", " ")
            skipped = f" # SKIP {result.skipped[0][1]}" if result.skipped else ""
            print("ok" if result.wasSuccessful() else "not ok", n_done, "-", name + skipped)
            for _, text in result.failures + result.errors:
                print("\n".join("# " + text_line for text_line in text.splitlines()))
    print(f"1..{n_done}")
    sys.exit(n_failed > 0)


main()
