#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs whose headers are older or newer than the library: public structs are shorter or longer than its own
(decision 31). Prints TAP.

usage: test_abi.py INCLUDE_FOLDER LIBRARY    (CC in the environment)
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools"))
import abi  # noqa: E402

INCLUDE, LIBRARY = sys.argv[1:]
STRUCTS = abi.GROWING_STRUCTS
count = failed = 0

# Every struct lies at the end of a page, behind which there is none, so reading or writing beyond it ends the program.
PROGRAM = r"""
#include <partita/partita.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *at_page_end(const void *from, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE)) return NULL;
    memset(at, 0x55, page);
    return from ? memcpy(at + page - bytes, from, bytes) : at + page - bytes;
}
#define PLACED(...) at_page_end(&(__VA_ARGS__), sizeof(__VA_ARGS__))
#ifdef FUTURE
#define SET(name, pointer) if (!strcmp(FUTURE, name)) (pointer)->future = 7
#define IS_ZERO(pointer) ((pointer)->future == 0)
#else
#define SET(name, pointer)
#define IS_ZERO(pointer) 1
#endif

static void take_match(void *context, const struct partita_match *match)
{
    (void)context;
    (void)match;
}

int main(void)
{
    static float x[64] = {1}, y[67];
    float taps[4] = {1, 2, 3, 4};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    struct partita_bank *bank;
    struct partita_problem *problem = PLACED((struct partita_problem){.kernel = {4}, .size = {PARTITA_UNBOUNDED}});
    struct partita_options *options = PLACED((struct partita_options){.log = {partita_log_stderr, NULL},
                                                                      .sample_rate = 48000});
    struct partita_taps *dense = PLACED((struct partita_taps){.dense = taps, .dense_count = 4});
    struct partita_load *load = at_page_end(NULL, sizeof *load);
    struct partita_stream_stats *stats = at_page_end(NULL, sizeof *stats);
    struct partita_bank_options *slots = PLACED((struct partita_bank_options){
        .slots = 1, .n_taps = 4, .block = 16, .log = {partita_log_stderr, NULL}, .sample_rate = 48000});
    SET("problem", problem);
    SET("options", options);
    SET("taps", dense);
    SET("bank_options", slots);
    if (partita_plan_create(problem, options, &plan)) return 3;
    if (partita_filter_create_from(plan, dense, &filter) || partita_stream_open(plan, filter, &stream)) return 3;
    if (partita_plan_load(plan, load) || load->mean <= 0 || !IS_ZERO(load)) return 4;
    partita_stream_process(stream, (float *[]){y}, (float *[]){x}, 64);
    if (partita_stream_stats(stream, stats) || stats->calls != 1 || !IS_ZERO(stats)) return 5;
    printf("%g %g %g", (double)y[0], (double)y[3], (double)y[4]);
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);

    if (partita_bank_create(slots, &bank) || partita_bank_stats(bank, stats) || !IS_ZERO(stats)) return 3;
    partita_bank_destroy(bank);

    options->sample_rate = 0;
    size_t size[PARTITA_MAX_RANK];
    struct partita_problem *slice = at_page_end(NULL, sizeof *slice);
    if (partita_slice_problem(PARTITA_CONVOLVE, PARTITA_F32, 64, 4, NULL, slice)) return 6;
    if (!IS_ZERO(slice) || partita_problem_output_size(slice, size) || size[0] != 67) return 6;
    if (partita_plan_create(slice, options, &plan)) return 6;
    struct partita_call *call = PLACED((struct partita_call){.workspace = NULL});
    SET("call", call);
    if (partita_filter_create(plan, taps, &filter) || partita_forward(plan, filter, y, x, call)) return 3;
    printf(" %g %g", (double)y[0], (double)y[3]);
    if (partita_convolve(PARTITA_F32, y, x, 64, taps, 4, NULL, options)) return 7;
    printf(" %g %g\n", (double)y[0], (double)y[3]);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);

    struct partita_causal *causal = PLACED((struct partita_causal){
        .batch = 1, .channels = 1, .frames = 64, .taps = 4, .w = taps, .x = {x, 64, 64, 1}, .y = {y, 64, 64, 1},
        .log = {partita_log_stderr, NULL}});
    SET("causal", causal);
    if (partita_causal_forward(causal) || y[3] != 1) return 3;

    struct partita_channelizer *channelizer;
    struct partita_channel_filter *narrow;
    struct partita_channelizer_options *band = PLACED((struct partita_channelizer_options){
        .channels = 1, .n_taps = 4, .log = {partita_log_stderr, NULL}});
    struct partita_channel *channel = PLACED((struct partita_channel){.taps = taps, .n_taps = 4});
    SET("channelizer_options", band);
    SET("channel", channel);
    if (partita_channelizer_create(band, &channelizer)) return 3;
    if (partita_channel_filter_create(channelizer, channel, &narrow)) return 3;
    partita_channel_filter_destroy(narrow);
    partita_channelizer_destroy(channelizer);

    struct partita_pairs *pairs;
    struct partita_pairs_options *array = PLACED((struct partita_pairs_options){
        .signals = 2, .log = {partita_log_stderr, NULL}});
    SET("pairs_options", array);
    if (partita_pairs_create(array, &pairs)) return 3;
    partita_pairs_destroy(pairs);

    struct partita_adaptive *adaptive;
    struct partita_adaptive_options *echo = PLACED((struct partita_adaptive_options){
        .taps = 4, .log = {partita_log_stderr, NULL}});
    SET("adaptive_options", echo);
    if (partita_adaptive_create(echo, &adaptive)) return 3;
    partita_adaptive_destroy(adaptive);

    const float *samples[] = {taps}, *signal[] = {x};
    const size_t length = 4;
    struct partita_match_options *matching = PLACED((struct partita_match_options){
        .templates = 1, .samples = samples, .lengths = &length, .threshold = 2, .report = take_match,
        .log = {partita_log_stderr, NULL}});
    SET("match_options", matching);
    if (partita_match_templates(matching, signal, 64)) return 3;

    struct partita_decode *decode;
    struct partita_decode_options *decoding = PLACED((struct partita_decode_options){
        .sequences = 1, .channels = 1, .n_taps = 4, .log = {partita_log_stderr, NULL}});
    SET("decode_options", decoding);
    if (partita_decode_create(decoding, taps, &decode)) return 3;
    partita_decode_destroy(decode);

    double designed[5];
    struct partita_design *design = PLACED((struct partita_design){.cutoff = {0.25}, .width = 0.2, .taps = 5,
                                                                   .log = {partita_log_stderr, NULL}});
    struct partita_design_result *measured = at_page_end(NULL, sizeof *measured);
    SET("design", design);
    if (partita_design_taps(design, designed, 5)) return 3;
    if (partita_design_measure(design, designed, 5, measured) || measured->delay != 2 || !IS_ZERO(measured)) return 8;

    const struct partita_section peak = {.frequency = 0.1};
    struct partita_equalizer *equalizer = PLACED((struct partita_equalizer){
        .sections = &peak, .n_sections = 1, .taps = 5, .log = {partita_log_stderr, NULL}});
    struct partita_crossover *crossover = PLACED((struct partita_crossover){
        .bands = 2, .crossing = {{.frequency = 0.1}}, .taps = 2, .log = {partita_log_stderr, NULL}});
    struct partita_equalizer_result *achieved = at_page_end(NULL, sizeof *achieved);
    SET("equalizer", equalizer);
    SET("crossover", crossover);
    if (partita_equalizer_taps(equalizer, designed, 5, achieved) || achieved->taps != 5 || !IS_ZERO(achieved)) return 3;
    if (partita_crossover_taps(crossover, designed, 2, achieved) || achieved->taps != 2) return 3;

    const double impulse = 1;
    static double corrected[200];
    struct partita_correction *correction = PLACED((struct partita_correction){
        .rate = 1000, .frames = 1, .taps = 200, .log = {partita_log_stderr, NULL}});
    struct partita_correction_report *did = at_page_end(NULL, sizeof *did);
    SET("correction", correction);
    if (partita_correction_taps(correction, &impulse, corrected, did)) return 3;
    if (did->delay != 0 || !IS_ZERO(did)) return 8;
    return 0;
}
"""


def report(good, name, message):
    global count, failed
    count += 1
    failed += not good
    print(("ok" if good else "not ok") + f" {count} - {name}")
    if not good:
        print("\n".join("# " + line for line in message.split("\n")))


def edited(folder, edit):
    """A copy of the headers in which `edit` has changed the members of each struct that may grow."""
    copy = os.path.join(folder, "partita")
    shutil.copytree(INCLUDE + "/partita", copy)
    found = set()
    for name in os.listdir(copy):
        path = os.path.join(copy, name)
        with open(path) as file:
            text = file.read()
        for struct in STRUCTS:
            pattern = re.compile(r"(struct partita_%s \{\n)(.*?)(\n\};\n)" % struct, re.S)
            if pattern.search(text):
                found.add(struct)
            text = pattern.sub(lambda match: match[1] + edit(struct, match[2]) + match[3], text)
        with open(path, "w") as file:
            file.write(text)
    assert found == set(STRUCTS), found
    return folder


def without_last_member(struct, members):
    """The header of an earlier version; its last member is 8 bytes, as sizes of structs are multiples of 8."""
    lines = [line for line in members.split("\n") if re.match(r"    [a-z]", line)]
    last = lines[-1]
    if re.search(r"\b(reserved|filter_uses)\b", last):  # with what shares its word
        last = {"problem": lines[-4], "options": lines[-2], "design": lines[-2], "call": lines[-2]}[struct]
    return members[:members.index(last)].rstrip("\n")


def with_new_member(_, members):
    return members + "\n    size_t future;"


def result(folder, include, *defines):
    source, program = os.path.join(folder, "program.c"), os.path.join(folder, "program")
    with open(source, "w") as file:
        file.write(PROGRAM)
    made = subprocess.run([*os.environ.get("CC", "cc").split(), "-D_GNU_SOURCE", "-std=gnu11", "-Wall", "-Wextra",
                           "-Werror", *defines, "-I" + include, source, "-o", program, LIBRARY,
                           "-Wl,-rpath," + os.path.dirname(LIBRARY)], capture_output=True, text=True)
    if made.returncode:
        return made.returncode, "", made.stderr
    ran = subprocess.run([program], capture_output=True, text=True)
    return ran.returncode, ran.stdout, ran.stderr


def padded_structs():
    """Structs that may grow and end with padding, where a new field could lie."""
    made = subprocess.run([*os.environ.get("CC", "cc").split(), "-Wpadded", "-fsyntax-only", "-I" + INCLUDE,
                           "-include", "partita/partita.h", "-x", "c", os.devnull], capture_output=True, text=True)
    found = []
    for path, line in re.findall(r"^(.*):([0-9]+):[0-9]+: warning: padding (?:struct size|size of)", made.stderr, re.M):
        with open(path) as file:
            text = "\n".join(file.read().split("\n")[:int(line)])
        found.append(re.findall(r"struct partita_(\w+) \{", text)[-1])
    return [name for name in found if name in STRUCTS]


EXPECTED = (0, "1 4 0 1 4 1 4\n", "")
report(not padded_structs(), "no struct ends with padding", repr(padded_structs()))
with tempfile.TemporaryDirectory() as folder:
    got = result(folder, INCLUDE)
    report(got == EXPECTED, "headers of the library", repr(got))
with tempfile.TemporaryDirectory() as folder:
    got = result(folder, edited(folder, without_last_member))
    report(got == EXPECTED, "older headers", repr(got))
with tempfile.TemporaryDirectory() as folder:
    include = edited(folder, with_new_member)
    got = result(folder, include, '-DFUTURE=""')
    report(got == EXPECTED, "newer headers", repr(got))
    for struct in ("problem", "options", "taps", "bank_options", "call", "design", "causal", "channelizer_options",
                   "channel", "pairs_options", "adaptive_options", "match_options", "decode_options", "equalizer", "crossover",
                   "correction"):
        got = result(folder, include, f'-DFUTURE="{struct}"')
        said = "options" if struct.endswith("_options") else struct
        report(got[0] == 3 and re.match(f"partita: {said}: byte [0-9]+ is set, but version", got[2]),
               f"newer headers, a new field of {struct} is set", repr(got))
print(f"1..{count}")
sys.exit(failed > 0)
