#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the web site in build-ci/site/html: all documents, and the references of the commands, the C functions and the Python
# package. Sphinx, its theme, and the package for Python are installed into an environment of their own, build-ci/site/python.
# Warnings are errors, and all links between pages are followed.
#   tools/site.sh [BUILD]        BUILD has the program `partita`; build if not given, which is then brought up to date
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh build python >&2
site="build-ci/site"
mkdir -p "$site"
log=$site/log
failed() {
    tail -n 60 "$log" >&2
    echo "$1 failed" >&2
    exit 1
}
if [ $# -eq 0 ]; then
    { [ -f build/build.ninja ] || meson setup build; meson compile -C build apps/partita; } >"$log" 2>&1 || failed "building partita"
fi
build=${1:-build}

[ -x "$site/python/bin/python" ] || ${PYTHON:-python3} -m venv "$site/python" >"$log" 2>&1 || failed "python3 -m venv"
"$site/python/bin/pip" install -q --disable-pip-version-check 'sphinx~=8.2' 'myst-parser~=4.0' furo scipy . >"$log" 2>&1 ||
    failed "pip install"
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$site/python/bin/python" docs/site/pages.py "$build/apps/partita" "$pages"
"$site/python/bin/python" -m sphinx -q -W --keep-going -n -c docs/site -d "$site/doctrees" "$pages" "$site/html"
"$site/python/bin/python" docs/site/check.py "$site/html"
echo "$PWD/$site/html/index.html"
