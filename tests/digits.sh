#!/bin/sh
# SPDX-License-Identifier: MIT
# examples/digits learns: an accuracy of at least 97 % on unseen digits within a minute, by every engine that has its
# layers, and losses with the same bits for any number of threads.
# Usage: digits.sh DIGITS_PROGRAM EXPORT.py
digits=$(realpath "$1")
export=$(realpath "$2")
# shellcheck source=tests/support/tap.sh
. "$(dirname "$0")/support/tap.sh"
/usr/bin/python3 -c 'import sklearn' 2>/dev/null || skip_all 'no scikit-learn (python3-sklearn)'
cd "$folder" || exit 1

# The accuracy that a run printed, in whole per cent.
accuracy() {
    sed -n 's/^accuracy \([0-9]*\).*/\1/p' "$1"
}

# Whether the first losses of two runs, before any training step, differ by rounding alone: each of four layers adds
# an error of less than 2e-6, and a loss of about 2 may have several times their sum.
same_start() {
    paste -d, "$1" "$2" | awk -F, 'NR == 2 { d = $2 - $4; exit !(d < 1e-4 && d > -1e-4) }'
}

/usr/bin/python3 "$export" digits.bin
report $? export

begin=$(date +%s)
"$digits" --loss planner.csv digits.bin >planner.out
status=$?
end=$(date +%s)
[ $status -eq 0 ] && [ "$(accuracy planner.out)" -ge 97 ]
report $? "accuracy: $(tail -n 1 planner.out)"
[ $((end - begin)) -lt 60 ]
report $? "less than a minute: $((end - begin)) s"

"$digits" --threads 3 --loss threads.csv digits.bin >/dev/null && cmp planner.csv threads.csv
report $? "the same with three threads"

"$digits" --engine cpu/direct --loss direct.csv digits.bin >direct.out && [ "$(accuracy direct.out)" -ge 97 ]
report $? "cpu/direct: $(tail -n 1 direct.out)"
for engine in gemm winograd tiles; do
    if "$digits" --engine cpu/$engine --loss $engine.csv digits.bin >$engine.out 2>$engine.err; then
        [ "$(accuracy $engine.out)" -ge 97 ] && same_start $engine.csv direct.csv
        report $? "cpu/$engine: $(tail -n 1 $engine.out)"
    elif grep -q 'no such engine' $engine.err; then
        report 0 "cpu/$engine # SKIP it is not in this build"
    else
        report 1 "cpu/$engine: $(tail -n 1 $engine.err)"
    fi
done

"$digits" --engine cpu/none digits.bin >/dev/null 2>&1
[ $? -eq 1 ]
report $? "an engine that is not there"
head -c 1000 digits.bin >short.bin
"$digits" short.bin 2>short.err
[ $? -eq 1 ] && grep -q short.bin short.err
report $? "a file that is too short"
"$digits" none.bin 2>none.err
[ $? -eq 1 ] && grep -q 'none.bin: No such file' none.err
report $? "a file that is not there"
"$digits" --help 2>help.err
[ $? -eq 2 ] && grep -q usage help.err
report $? "--help is no file"
/usr/bin/python3 "$export" 2>export.err
[ $? -eq 1 ] && [ "$(cat export.err)" = 'usage: export.py OUT' ]
report $? "export.py without a name"
/usr/bin/python3 -S "$export" digits.bin 2>export.err # -S: without installed packages
[ $? -eq 1 ] && [ "$(wc -l <export.err)" -eq 1 ] && grep -q 'install scikit-learn' export.err
report $? "export.py without scikit-learn"
end
