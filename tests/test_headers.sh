#!/bin/sh
# SPDX-License-Identifier: MIT
# Each public header compiles alone and when included twice, as C11 and as C++11, without a warning under -Wpedantic.
# Usage: test_headers.sh INCLUDE_FOLDER     (CC and CXX in the environment)
include=$1
: "${CC:=cc}" "${CXX:=c++}"
flags="-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I$include"
# shellcheck source=tests/support/tap.sh
. "$(dirname "$0")/support/tap.sh"

for header in "$include"/partita/*.h; do
    name=$(basename "$header")
    printf '#include <partita/%s>\n#include <partita/%s>\nint main(void) { return 0; }\n' "$name" "$name" >"$folder/one.c"
    cp "$folder/one.c" "$folder/one.cc"
    # shellcheck disable=SC2086 # the variables hold several words
    $CC -std=c11 -Wstrict-prototypes -Wmissing-prototypes $flags "$folder/one.c"
    report $? "$name-c11"
    # shellcheck disable=SC2086
    $CXX -std=c++11 $flags "$folder/one.cc"
    report $? "$name-c++11"
done
end
