#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The web site: tools/site.sh makes it without warnings or broken links, a headless browser shows its pages without
errors, and its search finds functions, options and classes.

usage: test_site.py SOURCE_FOLDER BUILD_FOLDER [FOLDER_FOR_PICTURES]
"""
import functools
import http.server
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

SOURCE, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SITE = SOURCE / "build-ci/site/html"
# Pages, and a text that each shows.
PAGES = {
    "index.html": "Is it for you?",
    "docs/tutorials.html": "partita convolve --tail no",
    "docs/bench.html": "zita-convolver",
    "docs/decisions/0006-partitions.html": "search over predicted costs",
    "reference/c/stream.html": "partita_stream_process",
    "reference/python.html": "class partita.Stream",
    "reference/commands.html": "--normalised",
}
# What somebody searches for, and a page that must be among the results.
SEARCHES = {
    "partita_stream_swap": "reference/c/stream.html",
    "normalised": "reference/commands.html",
    "correlation_peaks": "reference/python.html",
    "Snakemake": "docs/jobs.html",
}
count = failed = 0


def report(good, name, text=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in text.splitlines()[-60:] if not good else []:
        print("#", line)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Browser:
    """Shows pages in windows of 1200 by 900 points, each in a new process."""

    def __init__(self, program, url, profile):
        self.url = url
        self.command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                        "--hide-scrollbars", "--window-size=1200,900", "--enable-logging=stderr",
                        f"--user-data-dir={profile}", "--virtual-time-budget=20000"]

    def show(self, page, *options):
        done = subprocess.run([*self.command, *options, self.url + page], capture_output=True, timeout=120)
        said = done.stderr.decode(errors="replace")
        errors = [line for line in said.splitlines() if "CONSOLE" in line and "rror" in line]
        return done.stdout.decode(errors="replace"), "\n".join(errors)


def text_of(dom):
    """The words of a page, without elements and scripts."""
    dom = re.sub(r"<(script|style)\b.*?</\1>", "", dom, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", "", dom).split())


def colours(path):
    """How many colours a picture has: one if the page stayed blank."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-vf", "format=rgb24", "-f", "rawvideo", "-"],
                          capture_output=True, check=True)
    return len({done.stdout[i:i + 3] for i in range(0, len(done.stdout), 3)})


def browse(browser, pictures):
    for page, text in PAGES.items():
        dom, errors = browser.show(page, "--dump-dom")
        report(text in text_of(dom) and not errors, page, errors or f"{text!r} is not on it:\n{text_of(dom)[:2000]}")
        picture = pathlib.Path(pictures, page.replace("/", "-").replace(".html", ".png"))
        browser.show(page, f"--screenshot={picture}")
        report(picture.is_file() and colours(picture) > 16, f"picture of {page}")
    for words, page in SEARCHES.items():
        dom, errors = browser.show(f"search.html?q={words}", "--dump-dom")
        report(f'href="{page}' in dom and not errors, f"search for {words}", errors or text_of(dom)[:2000])


def main():
    done = subprocess.run([SOURCE / "tools/site.sh", BUILD], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    report(done.returncode == 0, "tools/site.sh", done.stdout)
    program = shutil.which("chromium")
    if program is None or shutil.which("ffmpeg") is None:
        report(True, "pages in a browser # SKIP no chromium or no ffmpeg")
    elif done.returncode == 0:
        handler = functools.partial(Handler, directory=SITE)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            browser = Browser(program, f"http://127.0.0.1:{server.server_port}/", f"{folder}/profile")
            browse(browser, sys.argv[3] if len(sys.argv) > 3 else folder)
        server.shutdown()
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
