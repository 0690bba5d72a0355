#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/seeds.md is what bench/seeds.py writes, the names on it exist, and others are found. TAP.
Usage: test_seeds.py ROOT (of the sources)."""
import contextlib
import io
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import seeds  # noqa: E402


class SeedsTest(unittest.TestCase):
    def setUp(self):
        """A tree with the sources of this one, and a page and lines of algorithms of its own."""
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("lib", "include", "apps", "python", "tests", "examples", *(f"bench/{p.name}" for p in (ROOT / "bench").iterdir()),
                     *(f"docs/{p.name}" for p in (ROOT / "docs").iterdir())):
            if name not in ("docs/seeds.md", "docs/images", "bench/seeds"):
                (self.root / name).parent.mkdir(exist_ok=True)
                (self.root / name).symlink_to(ROOT / name)
        (self.root / "docs/images").mkdir()
        shutil.copytree(ROOT / "bench/seeds", self.root / "bench/seeds")

    def wrong(self, where="cpu/direct", tests="engines", state=""):
        """What is said of one line."""
        (self.root / "bench/seeds/algorithms.csv").write_text(
            f'source,algorithm,where,tests,state\nfilters,one,{where},"{tests}",{state}\n')
        return list(seeds.wrong_names(self.root))

    def test_the_page_is_current(self):
        self.assertEqual(list(seeds.problems(ROOT)), [])

    def test_a_changed_page_is_found(self):
        for path, text in seeds.outputs(self.root).items():
            (self.root / path).write_text(text)
        self.assertEqual(list(seeds.problems(self.root)), [])
        picture = self.root / "docs/images/sweep-4.5.svg"
        picture.write_text(picture.read_text().replace("#0060a8", "#0060a9"))
        (self.root / "docs/seeds.md").unlink()
        self.assertEqual([problem.split(":")[0] for problem in seeds.problems(self.root)],
                         ["docs/seeds.md", "docs/images/sweep-4.5.svg"])

    def test_a_new_figure_changes_the_page(self):
        before = seeds.outputs(self.root)["docs/seeds.md"]
        figures = self.root / "bench/seeds/thesis-4.5.csv"
        figures.write_text(figures.read_text().replace("755.99", "756.99"))
        self.assertNotEqual(seeds.outputs(self.root)["docs/seeds.md"], before)

    def test_names_that_exist(self):
        for name in ("cpu/direct", "cuda/direct:halo", "cuda/overlap-add:3-steps", "options.engine", "options.parts",
                     "parts.in_time", "problem.pad_end", "problem.kernel", "call.workspace", "--parts", "partita_forward",
                     "partita_plan_create", "partita.dask.convolve", "partita.nn.replace_", "bench:openblas", "docs/parts.md"):
            self.assertEqual(self.wrong(name), [], name)

    def test_names_that_do_not_exist(self):
        # Among them: an engine of another device, a variant of another engine, a field of another struct, words of
        # comments, a prefix.
        for name in ("cpu/separable", "cuda/direct:gauss", "cuda/tiles:halo", "options.kernel", "options.nothing",
                     "problem.parts", "call.engine", "options.calls", "--part", "partita_for", "partita.nn.replace",
                     "bench:openbla", "docs/part.md", "docs", "direct"):
            self.assertEqual(self.wrong(name), [f"one: no {name}"], name)
            self.assertEqual(self.wrong(f"cpu/direct {name}"), [f"one: no {name}"], name)

    def test_tests_that_do_not_exist(self):
        for name in ("engines", "engines-hostdev", "divisions/divisions-60-36", "apps-shards", "python-dask", "digits"):
            self.assertEqual(self.wrong(tests=f"layers, {name}"), [], name)
        for name in ("engine-of-none", "divisions/divisions-60-37", "apps-shard-of-none", "python-none"):
            self.assertEqual(self.wrong(tests=f"layers, {name}"), [f"one: no {name}"], name)
        self.assertEqual(self.wrong(tests=""), ["one: no tests"])

    def test_states(self):
        self.assertEqual(self.wrong(state="device"), [])
        self.assertEqual(self.wrong(state="replaced: by another"), [])
        self.assertEqual(self.wrong(where="", tests="", state="absent"), [])
        self.assertEqual(self.wrong(where="cpu/none", state="absent"), [])
        self.assertEqual(self.wrong(where="cpu/none", state="device"), ["one: no cpu/none"])
        self.assertEqual(self.wrong(state="absent"), ["one: is not absent: all of its names exist"])
        self.assertEqual(self.wrong(where=""), ["one: no names"])
        self.assertEqual(self.wrong(state="partial"), ["one: unknown state partial"])


def main():
    n_done = n_failed = 0
    for test in unittest.defaultTestLoader.loadTestsFromTestCase(SeedsTest):
        result = unittest.TestResult()
        with contextlib.redirect_stdout(io.StringIO()):
            test.run(result)
        n_done += 1
        n_failed += not result.wasSuccessful()
        print("ok" if result.wasSuccessful() else "not ok", n_done, "-", test.id().split(".test_")[-1].replace("_", "-"))
        for _, text in result.failures + result.errors:
            print("\n".join("# " + line for line in text.splitlines()))
    print(f"1..{n_done}")
    sys.exit(n_failed > 0)


main()
