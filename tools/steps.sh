# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# For scripts of many steps: each step runs whatever the ones before it did, and the last line adds up their counts.
steps_folder=$(mktemp -d) || exit 1
trap 'rm -rf "$steps_folder"' EXIT
: >"$steps_folder/counts"

# step NAME COMMAND...: the command's last line counts its tests, if it has such a line; else the command is one test.
step() {
    name=$1
    shift
    echo "== $name"
    begin=$(date +%s)
    status=0
    "$@" >"$steps_folder/output" 2>&1 || status=$?
    line=$(tail -n 1 "$steps_folder/output")
    case $line in
    *' passed, '*' failed'*) ;;
    *) if [ "$status" -eq 0 ]; then line='1 passed, 0 failed'; else line='0 passed, 1 failed'; fi ;;
    esac
    if [ "$status" -ne 0 ]; then
        cat "$steps_folder/output"
        # A step that fails although its count shows none must show in the sum.
        case $line in *' 0 failed'*) echo '0 passed, 1 failed' >>"$steps_folder/counts" ;; esac
    fi
    echo "$line" >>"$steps_folder/counts"
    echo "   $line, $(($(date +%s) - begin)) s"
}

# Prints the sum; status 1 if anything failed.
steps_end() {
    awk '$2 == "passed," { passed += $1; failed += $3; skipped += $5 }
        END {
            printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
            exit failed || !passed
        }' "$steps_folder/counts"
}
