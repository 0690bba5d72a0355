#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages, passes them to lintian, installs them with what they depend on and a compiler into a bare
# root of the running release, and there compiles a program and runs it, and the program `partita`.
# Usage: debian.sh SOURCE_FOLDER
source=$1
# shellcheck source=tests/support/tap.sh
. "$(dirname "$0")/support/tap.sh"

debs=$folder/debs
quietly "$source/packaging/build-deb.sh" "$debs"
report $? build
quietly lintian --fail-on error,warning "$debs"/*.changes
report $? lintian

cd "$debs" && dpkg-scanpackages . >Packages 2>"$folder/log"
report $? index
cat >"$folder/hook" <<EOS
#!/bin/sh
set -e
cp "$source/tests/install/example.c" "\$1"
chroot "\$1" sh -c 'gcc example.c -o shared \$(pkg-config --cflags --libs partita)'
chroot "\$1" sh -c 'gcc example.c -o static -l:libpartita.a \$(pkg-config --static --libs partita | sed s/-lpartita//)'
chroot "\$1" ./shared
chroot "\$1" ./static
chroot "\$1" partita plan --taps 64
EOS
chmod +x "$folder/hook"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
chmod 755 "$folder" # apt reads it as another user
quietly mmdebstrap --variant=essential --include=partita,libpartita-dev,gcc,libc6-dev,pkgconf --format=null \
    --setup-hook="echo 'deb [trusted=yes] copy:$debs ./' >\"\$1/etc/apt/sources.list.d/partita.list\"" \
    --customize-hook="$folder/hook" "$release" -
report $? install-into-a-bare-root
[ "$(grep -c '^1 0 0.5 0.25 0 0 0 0 cpu/direct' "$folder/log")" = 2 ]
report $? programs-with-both-libraries
grep -q '<- chosen' "$folder/log"
report $? partita

end
