# SPDX-License-Identifier: MIT
"""For benchmarks written in Python: calls timed in turns, and rows of CSV as bench/runner prints them."""
import argparse
import fnmatch
import statistics
import sys
import time

HEADER = "case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check"


def interleaved(functions, repetitions=3, seconds=0, calls=1):
    """Seconds of one call of each function, by its key, in turns, so that other load of the machine affects all alike.

    A time is the mean of so many calls. There are at least so many repetitions, which take at least `seconds` in all.
    """
    times = {key: [] for key in functions}
    end, done = time.perf_counter() + seconds, 0
    while done < repetitions or time.perf_counter() < end:
        for key, function in functions.items():
            begin = time.perf_counter()
            for _ in range(calls):
                function()
            times[key].append((time.perf_counter() - begin) / calls)
        done += 1
    return times


def print_row(case, contender, threads, times, check, n_bytes="", largest=""):
    """A row from the seconds that an item took in each repetition; `largest`: of an item, over the mean."""
    median = statistics.median(times)
    print(f"{case},{contender},{threads},{median * 1e9:.5g},{(max(times) - min(times)) / median:.3f},{largest},{n_bytes},"
          f"{check:.3g}", flush=True)


def distance(result, expected):
    """The relative L2 distance of two tensors."""
    return float((result.double() - expected).norm() / expected.norm())


def run(description, cases, measure):
    """Calls measure(case, ..., quick) for those of the cases, tuples, that the arguments of the program name. The exit
    status is 1 if it has returned False."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three calls a row")
    parser.add_argument("--case", default="*")
    arguments = parser.parse_args()
    print(HEADER)
    results = [measure(*case, arguments.quick) for case in cases if fnmatch.fnmatch(case[0], arguments.case)]
    sys.exit(False in results)
