#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages from the files that git knows, as they are now, and copies them into a folder. They contain
# native transforms alone, without FFTW, and are therefore under the MIT licence.
#   packaging/build-deb.sh FOLDER
# In the root of the repository, `apt-get build-dep ./packaging` installs what building them needs.
set -eu
if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo "usage: packaging/build-deb.sh FOLDER" >&2
    exit 2
fi
tree=$(cd "$(dirname "$0")/.." && pwd)
command -v dpkg-buildpackage >/dev/null || {
    echo "packaging/build-deb.sh: dpkg-buildpackage is missing; \`apt-get install dpkg-dev\` installs it" >&2
    exit 1
}
missing=$(dpkg-checkbuilddeps "$tree/packaging/debian/control" 2>&1) || {
    echo "packaging/build-deb.sh: missing: ${missing#*dependencies: }; \`apt-get build-dep ./packaging\` in $tree" \
        "installs them" >&2
    exit 1
}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$tree"
git ls-files -z | tar --null -T - -c | tar -x -C "$work" --one-top-level=partita
cp -r packaging/debian "$work/partita/debian"
(cd "$work/partita" && dpkg-buildpackage -b -us -uc)
find "$work" -maxdepth 1 -type f -exec cp -t "$folder" {} +
