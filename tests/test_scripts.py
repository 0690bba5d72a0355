#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Scripts of tools/, packaging/ and bench/ in copies of the tree, with the slow commands replaced: what they remove, and
what they say is missing. TAP.
Usage: test_scripts.py ROOT (of the sources)."""
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
COPIED = ("README.md", "python/README.md", "docs/bench.md", "docs/c.md", "docs/site", "include", "packaging", "tools", "bench")
SCRIPTS = sorted(path for folder in ("tools", "packaging", "bench", "tests", "lib", ".ci")
                 for path in (ROOT / folder).rglob("*") if path.suffix == ".sh" or path == ROOT / ".ci/run")


class ScriptTest(unittest.TestCase):
    """Each test has a repository named partita, with a change that is not committed, and a folder of commands that are
    found first."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tree = self.folder / "partita"
        for name in COPIED:
            target = self.tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, target)
        self.commands = self.folder / "commands"
        self.script(self.tree / "tools/setup.sh", ":")
        self.git("init", "-q")
        self.git("add", "README.md", "packaging")
        self.mine = [self.keep(self.tree / "uncommitted")]

    def git(self, *words):
        subprocess.run(["git", "-C", self.tree, "-c", "core.fsync=none", *words], check=True)

    def keep(self, path):
        """A file that no script made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
        return path

    def script(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def command(self, name, text):
        self.script(self.commands / name, text)

    def run_script(self, *words, cwd=None, **environment):
        result = subprocess.run(words, cwd=cwd or self.tree, capture_output=True, text=True, timeout=100, env={
            **os.environ, "PATH": f"{self.commands}:{os.environ['PATH']}", **environment})
        for path in self.mine:
            self.assertTrue(path.exists(), f"{path} is gone; {result.stderr}")
        self.assertTrue((self.tree / ".git/HEAD").exists())
        return result


class Removal(unittest.TestCase):
    """What `rm -r` removes is a folder that mktemp made, or one whose fixed name is below build/ or build-ci/."""
    FIXED = re.compile(r"build(-ci)?/[\w./-]+")

    def may_remove(self, word, text):
        word = word.strip("\"'")
        name = re.match(r"\$\{?(\w+)\}?", word)
        rest = word[name.end():] if name else word
        if "$" in rest or ".." in rest:
            return False
        if not name:
            return self.FIXED.fullmatch(word) is not None
        # If mktemp fails, the script must end: the name is empty.
        made = r"\$\(mktemp -d\)" + (r"( \|\| exit 1)?" if re.search("^set -e", text, re.M) else r" \|\| exit 1")
        values = re.findall(rf"(?:^|[\s;]){name[1]}=(\$\([^)]*\)[^\n;]*|[^\s;]*)", text, re.M)
        return bool(values) and all(re.fullmatch(made, value) or "$" not in value and self.may_remove(value, text)
                                    for value in values)

    def removed(self, text):
        for line in text.splitlines():
            for words in re.findall(r"(?:^|[\s;'(])rm +-\w*[rR]\w* +([^;&|')]*)", line.split(" # ")[0]):
                yield from (word for word in words.split() if not word.startswith((">", "2>", "-")))

    def test_all_scripts(self):
        self.assertGreater(len(SCRIPTS), 25)
        n = 0
        for path in SCRIPTS:
            text = path.read_text()
            for word in self.removed(text):
                n += 1
                self.assertTrue(self.may_remove(word, text), f"{path.relative_to(ROOT)} removes {word}")
        self.assertGreater(n, 5)

    def test_the_check(self):
        for text, expected in (("set -eu\nw=$(mktemp -d)\nrm -rf \"$w\"", True), ("w=$(mktemp -d)\nrm -rf \"$w\"", False),
                               ("w=$(mktemp -d) || exit 1\ntrap 'rm -rf \"$w\"' EXIT", True),
                               ("set -eu\nw=$1\nrm -rf \"$w\"", False), ("set -eu\nw=${1-x}/readme\nrm -rf $w", False),
                               ("set -eu\nw=build/a\nrm -rf \"$w\"", True), ("set -eu\nrm -rf build-ci/a", True),
                               ("set -eu\nw=build/a\nrm -rf \"$w.new\"", True), ("set -eu\nw=build/a\nrm -rf \"$w-$b\"", False),
                               ("set -eu\nw=build/..\nrm -rf \"$w\"", False), ("set -eu\nw=build/a\nw=$w-$1\nrm -rf $w", False),
                               ("set -eu\nrm -fr \"$w\"", False), ("set -eu\nw=.\n[ -n \"$x\" ] || rm -r $w", False)):
            self.assertEqual(all(self.may_remove(word, text) for word in self.removed(text)), expected, text)
            self.assertEqual(len(list(self.removed(text))), 1, text)

    def test_no_python_script_removes_trees(self):
        for folder in ("tools", "packaging", "bench", "docs"):
            for path in (ROOT / folder).rglob("*.py"):
                self.assertNotIn("rmtree", path.read_text(), path)


class DebianPackages(ScriptTest):
    def setUp(self):
        super().setUp()
        self.command("dpkg-checkbuilddeps", ":")
        self.command("dpkg-buildpackage", "test -f debian/control && test -f uncommitted.c || exit 9\n"
                     "mkdir debian/tmp; for name in partita_0_all.deb partita_0.changes; do echo made >../$name; done")
        (self.tree / "uncommitted.c").write_text("mine")
        self.git("add", "uncommitted.c")
        self.mine.append(self.tree / "uncommitted.c")

    def build(self, folder, **how):
        result = self.run_script(str(self.tree / "packaging/build-deb.sh"), str(folder), **how)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_beside_the_checkout(self):
        self.mine.append(self.keep(self.folder / "partita.txt"))
        self.build("..")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["commands", "partita", "partita.txt", "partita_0.changes", "partita_0_all.deb"])

    def test_into_a_folder_with_one_named_partita(self):
        self.mine.append(self.keep(self.folder / "out/partita/file"))
        self.build(self.folder / "out")
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()),
                         ["partita", "partita_0.changes", "partita_0_all.deb"])

    def test_into_the_checkout_and_from_elsewhere(self):
        self.build(".")
        self.assertTrue((self.tree / "partita_0_all.deb").exists())
        elsewhere = self.folder / "else where"
        elsewhere.mkdir()
        self.build("debs", cwd=elsewhere)
        self.assertEqual(len(list((elsewhere / "debs").iterdir())), 2)

    def test_nothing_stays_behind(self):
        temporary = self.folder / "temporary"
        temporary.mkdir()
        self.build("..", TMPDIR=str(temporary))
        self.command("dpkg-buildpackage", "echo >../partita_0_all.deb; exit 7")
        before = sorted(self.folder.iterdir())
        self.assertNotEqual(self.run_script("packaging/build-deb.sh", "..", TMPDIR=str(temporary)).returncode, 0)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual((self.folder / "partita_0_all.deb").read_text(), "made\n")
        self.assertEqual(list(temporary.iterdir()), [])

    def test_missing_packages(self):
        self.command("dpkg-checkbuilddeps", "echo 'dpkg-checkbuilddeps: error: Unmet build dependencies: "
                     "debhelper-compat (= 13) lv2-dev' >&2; exit 1")
        self.command("dpkg-buildpackage", "exit 9")
        result = self.run_script("packaging/build-deb.sh", "../out")
        self.assertEqual(result.returncode, 1)
        self.assertIn("debhelper-compat (= 13) lv2-dev", result.stderr)
        self.assertIn("apt-get build-dep ./packaging", result.stderr)
        self.assertNotIn("Unmet", result.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_usage(self):
        for words in ([], ["a", "b"], [""]):
            result = self.run_script("packaging/build-deb.sh", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("usage: packaging/build-deb.sh FOLDER", result.stderr)


class FoldersOfUsers(ScriptTest):
    def test_examples_of_readme(self):
        """The compiler's stand-in makes a program that prints what the source says."""
        self.command("cc", "while [ $# -gt 0 ]; do case $1 in -o) out=$2 ;; *.c) source=$1 ;; esac; shift; done\n"
                     "sed -n 's,.*// prints: \\(.*\\),echo \"\\1\",p' \"$source\" >\"$out\"; chmod +x \"$out\"")
        self.mine.append(self.keep(self.folder / "build/readme/file"))
        (self.folder / "build/lib").mkdir()
        result = self.run_script("tools/readme_example.sh", "../build", CC="cc")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_wheel(self):
        for folder in ("build-ci/wheel-work", "../out"):
            self.mine.append(self.keep(self.tree / folder / "file"))
            self.assertNotEqual(self.run_script("packaging/wheels.sh", folder, PYTHON="false").returncode, 0)

    def test_pages_of_the_interface(self):
        for name in ("file", "file.3", "folder/file"):
            for other in ("man", "html"):
                folder = self.folder / name.replace("/", "-") / other
                self.mine.append(self.keep(folder / name))
                words = ["1.0", "include/partita", str(folder), str(self.folder / "html")]
                if other == "html":
                    words[2:] = [str(self.folder / "man"), str(folder)]
                result = self.run_script(sys.executable, "tools/api_pages.py", *words)
                self.assertEqual(result.returncode, 1, name)
                self.assertIn(str(folder), result.stderr)

    def test_pages_of_the_interface_again(self):
        words = ["tools/api_pages.py", "1.0", "include/partita", str(self.folder / "man"), str(self.folder / "html")]
        for _ in range(2):
            self.assertEqual(self.run_script(sys.executable, *words).returncode, 0)
            self.assertTrue((self.folder / "man/partita.3").exists())
            self.assertFalse((self.folder / "man/removed.3").exists())
            shutil.copy(self.folder / "man/partita.3", self.folder / "man/removed.3")

    def test_pages_of_the_site(self):
        self.mine.append(self.keep(self.folder / "pages/file"))
        result = self.run_script(sys.executable, "docs/site/pages.py", "true", str(self.folder / "pages"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("pages has files", result.stderr)


class Setup(ScriptTest):
    def installed(self, *groups):
        """The packages that a machine without any is given."""
        shutil.copy(ROOT / "tools/setup.sh", self.tree / "tools/setup.sh")
        self.command("dpkg", "echo amd64")
        self.command("dpkg-query", ":")
        self.command("id", "echo 0")
        self.command("apt-get", ":")
        result = self.run_script("tools/setup.sh", *groups)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.split()[0], "installing:")
        return set(result.stdout.split()[1:])

    def test_groups(self):
        build = self.installed()
        self.assertEqual(self.installed("build"), build)
        for group in ("test", "bench", "ci", "slow"):
            self.assertLess(build, self.installed(group), group)
        demo, python = self.installed("demo"), self.installed("python")
        self.assertLess(demo, build)
        self.assertLessEqual({"gcc", "meson", "guitarix-common", "alsa-utils", "libsndfile1-dev"}, demo)
        self.assertEqual(python, {"gcc", "libc6-dev", "python3", "python3-venv", "python3-dev"})
        self.assertEqual(self.installed("demo", "python"), demo | python)

    def test_no_such_group(self):
        shutil.copy(ROOT / "tools/setup.sh", self.tree / "tools/setup.sh")
        self.assertEqual(self.run_script("tools/setup.sh", "demos").returncode, 2)


class Demo(ScriptTest):
    """tools/demo.sh with a compiler that makes nothing."""

    def setUp(self):
        super().setUp()
        self.script(self.tree / "tools/setup.sh", 'echo "installing: $1"')
        self.command("python3", ":")
        self.command("meson", "mkdir -p $2; : >$2/build.ninja; echo \"$@\"")
        self.command("ninja", "shift; folder=$1; shift; echo \"ninja: $*\"; for n in $(seq 200); do echo \"$n 200 cc x\"; done\n"
                     "mkdir -p $folder/apps; printf '#!/bin/sh\\necho chosen\\n' >$folder/apps/partita\n"
                     "chmod +x $folder/apps/partita")

    def test_says_what_it_does(self):
        lines = self.run_script("tools/demo.sh").stdout.splitlines()
        self.assertEqual([line.split()[0].strip(":") for line in lines],
                         ["installing", "configuring", "compiling"] + 10 * ["compiling"] +
                         ["recording", "impulse", "chosen", "result"])
        self.assertEqual(lines[0], "installing: demo")
        self.assertEqual(lines[3].split()[1:], ["20", "of", "200"])
        self.assertEqual(lines[12].split()[1:], ["200", "of", "200"])
        log = (self.tree / "build-demo.log").read_text()
        self.assertIn("ninja: apps/partita", log)
        self.assertNotIn("configuring", self.run_script("tools/demo.sh").stdout)
        self.assertFalse((self.tree / "build").exists())  # a later build is complete

    def test_failures(self):
        self.command("ninja", "echo '1 2 cc x'; echo 'x.c: error'; exit 1")
        result = self.run_script("tools/demo.sh")
        self.assertEqual(result.returncode, 1)
        self.assertIn("x.c: error", result.stderr)
        self.assertNotIn("chosen", result.stdout)
        shutil.rmtree(self.tree / "build-demo")
        self.command("meson", "echo 'no soxr'; exit 1")
        result = self.run_script("tools/demo.sh")
        self.assertEqual((result.returncode, result.stderr), (1, "no soxr\n"))


HEADER = "case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check\n"


class Benchmarks(ScriptTest):
    """tools/bench.sh with programs that print one row each."""

    def setUp(self):
        super().setUp()
        self.script(self.tree / "tools/python.sh", ":")
        self.script(self.tree / "tools/load_plot.sh", ":")
        self.script(self.tree / "build-ci/python/bin/python", "case $* in *torch*) exit 1 ;; *freeze*) echo numpy==1 ;; "
                    f"*) echo '{HEADER[:-1]}' ;; esac")
        self.command("meson", f'echo "$@" >>{self.folder}/meson.log; case $1 in setup) mkdir -p build-bench/bench\n'
                     "echo 'zita-convolver (libzita-convolver-dev)' >build-bench/bench/absent-peers\n"
                     ": >build-bench/build.ninja ;; introspect) echo '[]' ;; esac")
        subjects = "plan memory small fft nonfinite fir stream signal cli layer network adaptive bank channelizer accuracy winograd"
        program = f"echo '{HEADER[:-1]}'"
        self.command("ninja", f"for name in {subjects}; do cp ../commands/program build-bench/bench/bench_$name; done")
        self.script(self.commands / "program", program)
        for name in ("control", "long_file"):
            self.script(self.tree / f"bench/programs/{name}.py", program)
        self.command("sox", ":")
        self.command("ffmpeg", ":")
        self.git("add", ".")
        self.git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "test")
        self.kept = self.keep(self.tree / "build/bench-results/fir.csv")

    def test_absent_peers_are_named_first(self):
        for n in (1, 2):
            result = self.run_script("tools/bench.sh", "--quick")
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = result.stderr.splitlines()
            begin = lines.index("absent peers, whose rows will be missing:")
            self.assertIn("  zita-convolver (libzita-convolver-dev)", lines[begin:lines.index("plan")])
            self.assertIn("  torch (", "\n".join(lines[begin:lines.index("plan")]))
            self.assertIn("tools/setup.sh bench", "\n".join(lines[begin:lines.index("plan")]))
            said = (self.folder / "meson.log").read_text()
            self.assertEqual("setup --wipe build-bench" in said, n == 2)
            self.assertNotIn(" build ", said.replace("\n", " "))
        self.assertFalse((self.tree / "build/build.ninja").exists())

    def test_nothing_is_said_where_all_are_there(self):
        self.command("meson", "mkdir -p build-bench/bench; echo >build-bench/bench/absent-peers")
        self.script(self.tree / "build-ci/python/bin/python",
                    f"case $* in *freeze*) echo numpy==1 ;; *.py*) echo '{HEADER[:-1]}' ;; esac")
        self.assertNotIn("absent", self.run_script("tools/bench.sh", "--quick").stderr)

    def test_results_stay_if_nothing_will_run(self):
        self.mine.append(self.kept)
        self.git("rm", "-q", "--cached", "README.md")  # a change
        for words, status in ((["--help"], 2), (["--quik"], 2), (["--again"], 2), (["--again", "fi"], 2),
                              (["--again", "fir", "x"], 2), (["--quick", "--avx2"], 2), ([], 1), (["--avx2"], 1),
                              (["--again", "fir"], 1)):
            result = self.run_script("tools/bench.sh", *words)
            self.assertEqual(result.returncode, status, words)
            self.assertIn("usage:" if status == 2 else "commit the changes", result.stderr)
        self.assertEqual(self.kept.read_text(), "mine")


class BenchTable(ScriptTest):
    ROWS = (("direct-f32-t64", "cpu/direct", 1, 0.9, 0.1), ("direct-f32-t64", "auto", 1, 0.5, 0.1),
            ("direct-f32-t64", "liquid-dsp", 1, 20, 0.1), ("mono-b64-t480000", "cpu/partitioned", 1, 13, 0.1),
            ("mono-b64-t480000", "auto", 1, 12, 0.1), ("mono-b64-t480000", "zita-convolver", 1, 90, 0.3),
            ("long-10M-x-1024", "auto", 1, 1, 0.1), ("long-10M-x-1024", "scipy-oaconvolve", 1, 12, 0.31),
            ("convolve-10min-stereo-t4096", "partita", 1, 5, 1.265), ("convolve-10min-stereo-t4096", "ffmpeg", 1, 10, 0.1),
            ("depthwise-31-forward", "auto", 1, 0.001, 0.1), ("depthwise-31-forward", "onednn", 1, 0.02, 0.1),
            ("caffenet-2-forward", "auto", 1, 0.001, 0.4), ("caffenet-2-forward", "onednn", 1, 0.02, 0.1),
            ("python-small-f64-10-x-3", "partita", 1, 1000, 0.1), ("python-small-f64-10-x-3", "numpy-convolve", 1, 800, 0.1),
            ("python-small-f32-10-x-3", "partita", 1, 800, 0.1), ("python-small-f32-10-x-3", "numpy-convolve", 1, 1000, 0.1),
            ("network-small-layer-step", "partita", 2, 500, 0.1), ("network-small-layer-step", "torch", 2, 250, 0.1),
            ("vgg-a-n16-forward", "auto", 1, 0.001, 0.2), ("vgg-a-n16-forward", "onednn", 1, 0.004, 0.1),
            ("vgg-b-n16-forward", "auto", 1, 0.003, 0.3), ("vgg-b-n16-forward", "onednn", 1, 0.004, 0.1))

    def results(self, commit="0123abc", subjects=("fir", "layer")):
        folder = self.folder / "results"
        folder.mkdir()
        layers = ("depthwise", "caffenet", "vgg")
        for name, chosen in (("fir", False), ("layer", True)):
            if name not in subjects:
                continue
            (folder / f"{name}.csv").write_text(HEADER + "".join(
                f"{case},{contender},{threads},{ns},{spread},,0,0\n" for case, contender, threads, ns, spread in self.ROWS
                if case.startswith(layers) == chosen))
        (folder / "load").write_text("0.1 0.1")
        (folder / "commit").write_text(commit)
        (folder / "layer-weights").write_text("case,network,depth,multiply_adds\n" + "".join(
            f"vgg-{layer}-n16-forward,vgg-e-n16-forward,1,{n}\n" for layer, n in (("a", 100), ("b", 300))))
        return str(folder)

    def table(self, *words):
        return self.run_script(sys.executable, "tools/bench_table.py", *words)

    def test_rows_with_a_large_spread(self):
        result = self.table("build", self.results())
        self.assertEqual(result.returncode, 0, result.stderr)
        readme = (self.tree / "README.md").read_text()
        # Peers have their versions where they are installed.
        self.assertRegex(readme, r"\| FIR filter, 64 taps, f32 stream \| 0.5 \| 20 \(liquid-dsp( [0-9.]+)?\) \| 40x \|")
        self.assertRegex(readme, r"\| 13 \| 90 \(zita-convolver( [0-9.]+)?\) \| 6.92x \|")
        self.assertIn("| depthwise, 31x31, forward | 2000 | 100 (onednn) | 20x |", readme)
        for label in ("10 M samples", "`partita convolve`, 10 min", "CaffeNet"):
            self.assertNotIn("| " + label, readme)
        for words in ("long-10M-x-1024 left out: the spread of scipy-oaconvolve is 0.310",
                      "convolve-10min-stereo-t4096 left out: the spread of partita is 1.265",
                      "caffenet-2-forward left out: the spread of auto is 0.400"):
            self.assertIn(words, result.stderr)
        self.assertEqual(result.stderr.count("left out"), 3)

    def test_one_contender_and_the_sums_on_the_page(self):
        self.assertEqual(self.table("build", self.results()).returncode, 0)
        page = (self.tree / "docs/bench.md").read_text()
        self.assertIn("| real f32 stream, liquid-dsp | `direct-f32-{t16,t64,t256}` | -, 40x, - |  | 15x |  |", page)
        self.assertIn("| long filter, zita-convolver | `mono-b64-{t480000,t65536}` | 6.92x, - |  | 6x, 5x | 9x, 8x |", page)
        self.assertIn("| `slowest vgg-*-n16-*` | 1.33x (`vgg-b-n16-forward`), -, - |  | 1x | 1.3x |", page)
        self.assertIn("| network, torch, 1 / 2 threads | `network-small-layer-{infer,step,infer-last,step-last,infer-autocast,"
                      "step-autocast}` | -, - / 0.5x, -, -, -, - |  | 1x, 1x, 1x, 1x, 0.98x, 0.98x |", page)
        # (100 * 0.001 + 300 * 0.003) / 400 = 0.0025 ns; (0.1 * 0.2 + 0.9 * 0.3) / 1 = 0.29.
        self.assertIn("vgg-e-n16-forward,auto,1,0.0025,0.290,,,\n", self.rows("layer"))
        self.assertIn("| VGG-E, 3x3, all layers, 16 images, forward | 800 | 500 (onednn) | 1.6x |",
                      (self.tree / "README.md").read_text())

    def test_what_is_slower_from_python(self):
        self.assertEqual(self.table("build", self.results()).returncode, 0)
        page = (self.tree / "python/README.md").read_text()
        self.assertIn("| `python-small-f64-10-x-3` | numpy-convolve | 1 | 1.25x |\n"
                      "| `network-small-layer-step` | torch | 2 | 2.00x |\n<!-- bench: end -->", page)
        self.assertNotIn("python-small-f32-10-x-3", page)

    def rows(self, name):
        return (self.tree / f"docs/bench/{name}.csv").read_text()

    def test_rows_of_one_benchmark_again(self):
        folder = self.results()
        self.assertEqual(self.table("build", folder).returncode, 0)
        layers = self.rows("layer")
        shutil.rmtree(folder)
        folder = self.results("0123abd", ("fir",))
        path = pathlib.Path(folder) / "fir.csv"
        path.write_text(path.read_text().replace("t64,auto,1,0.5", "t64,auto,1,0.4"))
        self.assertEqual(self.table("--again", "build", folder).returncode, 0)
        page = (self.tree / "docs/bench.md").read_text()
        self.assertIn("| `direct-f32-{t16,t64,t256}` | -, 50x, - |", page)
        self.assertIn("| commit | 0123abc; bench_fir: 0123abd |", page)
        self.assertEqual(self.rows("layer"), layers)

    def test_rows_of_another_processor_have_a_folder(self):
        folder = self.results()
        self.assertEqual(self.table("build", folder).returncode, 0)
        run = self.tree / "docs/bench/run.csv"
        here = re.search("family ([^ ]+) model ([^ ,]+)", run.read_text())
        run.write_text(re.sub("processor,.*", "processor,another", run.read_text()))
        kept = {path: path.read_text() for path in (self.tree / "docs/bench").glob("*.csv")}
        self.assertEqual(self.table("--again", "build", folder).returncode, 0)
        self.assertEqual({path: path.read_text() for path in kept}, kept)
        (own,) = (self.tree / "docs/bench").glob("family-*")
        self.assertTrue(own.name.startswith(f"family-{here[1]}-model-{here[2]}-"))
        self.assertEqual((own / "layer.csv").read_text(), self.rows("layer"))
        self.assertIn("commit,bench_fir: 0123abc; bench_layer: 0123abc", (own / "run.csv").read_text())
        shutil.rmtree(folder)
        self.assertEqual(self.table("--again", "build", self.results("0123abd", ("fir",))).returncode, 0)
        self.assertIn("commit,bench_layer: 0123abc; bench_fir: 0123abd", (own / "run.csv").read_text())

    def test_rows_with_avx2_alone(self):
        folder = self.results()
        self.assertEqual(self.table("build", folder).returncode, 0)
        self.assertEqual(self.table("--avx2", "build", folder).returncode, 0)
        self.assertIn("| `direct-f32-{t16,t64,t256}` | -, 40x, - | -, 40x, - | 15x |  |", (self.tree / "docs/bench.md").read_text())
        self.assertEqual(self.rows("avx2/layer"), self.rows("layer"))

    def test_changes_that_no_commit_has(self):
        pages = ("README.md", "docs/bench.md")
        before = [(self.tree / page).read_text() for page in pages]
        folder = self.results("0123abc-dirty")
        for option in ([], ["--avx2"], ["--again"]):
            result = self.table(*option, "build", folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn("-dirty", result.stderr)
        result = self.table("--print", "build", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| `direct-f32-{t16,t64,t256}` | -, 40x, - |", result.stdout)
        self.assertFalse((self.tree / "docs/bench").exists())
        self.assertEqual([(self.tree / page).read_text() for page in pages], before)


def main():
    n_done = n_failed = 0
    for tests_of in (Removal, DebianPackages, FoldersOfUsers, Setup, Demo, Benchmarks, BenchTable):
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(tests_of):
            result = unittest.TestResult()
            with contextlib.redirect_stdout(io.StringIO()):
                test.run(result)
            n_done += 1
            n_failed += not result.wasSuccessful()
            print("ok" if result.wasSuccessful() else "not ok", n_done, "-",
                  f"{tests_of.__name__.lower()}: " + test.id().split(".test_")[-1].replace("_", " "))
            for _, text in result.failures + result.errors:
                print("\n".join("# " + text_line for text_line in text.splitlines()))
    print(f"1..{n_done}")
    sys.exit(n_failed > 0)


main()
