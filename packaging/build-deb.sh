#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages from the files that git knows, as they are now, and leaves them in a folder.
#   packaging/build-deb.sh FOLDER
set -eu
mkdir -p "$1"
tree=$(cd "$1" && pwd)/partita
cd "$(dirname "$0")/.."
rm -rf "$tree"
git ls-files -z | tar --null -T - -c | tar -x -C "$(dirname "$tree")" --one-top-level=partita
cp -r packaging/debian "$tree/debian"
cd "$tree"
dpkg-buildpackage -b -us -uc
