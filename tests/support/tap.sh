# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# For tests written in shell: TAP, and a temporary folder, $folder, which is removed at the end.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
tests=0
failed=0

report() { # STATUS NAME
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then echo "ok $tests - $2"; else echo "not ok $tests - $2"; failed=1; fi
}

quietly() { # COMMAND...: prints the end of what the command wrote if it fails; all of it is in $folder/log
    "$@" >"$folder/log" 2>&1 || { tail -n 60 "$folder/log" | sed 's/^/# /'; false; }
}

skip_all() { # REASON
    echo "1..0 # SKIP $1"
    exit 0
}

end() { # the plan of TAP, and the exit status
    echo "1..$tests"
    exit $failed
}
