// SPDX-License-Identifier: MIT
// The option table, and getopt_long over it.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/samples/encoding.h"

const struct command_row command_rows[N_COMMANDS] = {
    {"convolve", "IR IN OUT", "filters IN with the impulse response IR",
     "The result is scipy.signal.convolve(IN, IR, mode): the tail is kept and the latency "
     "removed. ",
     3},
    {"correlate", "TEMPLATE IN OUT", "finds TEMPLATE in IN",
     "The result is scipy.signal.correlate(IN, TEMPLATE, mode), the conjugate of a complex "
     "template included. Sample k of the full result is the lag k - (length of TEMPLATE - 1). ",
     3},
    {"live", "", "filters what an audio device hears and plays it",
     "Needs --ir or --measure. In a terminal it shows levels, load and latency and obeys keys; "
     "SIGHUP reads the current filter again, SIGINT ends cleanly, a second one at once. ",
     0},
    {"devices", "", "lists the devices to compute on, and the audio devices", "", 0},
    {"plan", "", "shows how a filter would be run, and why so",
     "Describes the chosen engine, every other engine's cost or the reason against it, latency, "
     "memory and the bound of the error; of partitions which ones, what a call costs in the mean "
     "and at worst, and a timeline of the work: each column shows the heaviest of its calls. With "
     "--calibrate, measures this machine first and remembers it for all later runs. ",
     0},
    {"join", "OUT PART...", "joins the shares that convolve and correlate made with --range",
     "Every PART needs the file PART.range that lies beside it. Shares of different results, "
     "missing, overlapping or shortened ones are refused. OUT holds, byte for byte, what --range "
     "1/1 would have written. ",
     -2},
    {"layer", "forward|backward-data|backward-weight", "runs a layer of a network on .npy arrays",
     "Arrays are [batch, channels, 1 to 3 axes] and [out, in/groups, kernel], of type f4 or f8, "
     "all alike. The kernel is correlated with the input, as networks have it. forward reads "
     "--input, --weight and --bias; backward-data reads --grad-output and --weight and writes the "
     "gradient of the input, whose shape is --input-shape; backward-weight reads --input and "
     "--grad-output and writes the gradient of weights of --kernel-shape. ",
     1},
    {"help", "[COMMAND]", "shows this text, the manual page or shell completions", "", 1},
};

#define FILTERS (1u << COMMAND_CONVOLVE | 1u << COMMAND_CORRELATE)
#define LIVE (1u << COMMAND_LIVE)
#define DEVICES (1u << COMMAND_DEVICES)
#define PLAN (1u << COMMAND_PLAN)
#define JOIN (1u << COMMAND_JOIN)
#define LAYER (1u << COMMAND_LAYER)
#define HELP (1u << COMMAND_HELP)
#define AT(field) offsetof(struct settings, field)
#define MAX_SIZE (INT64_MAX / 4)

// clang-format off
const struct option_row option_rows[] = {
    {"Result", "mode", 'm', OPTION_CHOICE, "full|same|valid", FILTERS, AT(mode), 0, 0,
     "which part of the result to write, in SciPy's words: everything, as long as IN and centred, or where both overlap completely (default: full)"},
    {NULL, "first", 0, OPTION_NUMBER, "N", FILTERS | PLAN, AT(first), -MAX_SIZE, MAX_SIZE,
     "start at this sample of the full result (at this lag for correlate); what lies before costs nothing in a file"},
    {NULL, "last", 0, OPTION_NUMBER, "N", FILTERS | PLAN, AT(last), -MAX_SIZE, MAX_SIZE,
     "stop before this sample of the full result (before this lag for correlate); beyond its end the result is zero"},
    {NULL, "max-lag", 0, OPTION_NUMBER, "N", 1u << COMMAND_CORRELATE, AT(max_lag), 0, MAX_SIZE,
     "write the lags -N to N and no others"},
    {NULL, "stride", 0, OPTION_NUMBER, "N", FILTERS | PLAN, AT(stride), 1, 1 << 30,
     "keep every Nth sample of the result: decimation"},
    {NULL, "gain", 'g', OPTION_REAL, "DB", FILTERS | LIVE, AT(gain), LEAST_GAIN, -LEAST_GAIN,
     "amplify by this many decibels"},
    {NULL, "matrix", 0, OPTION_FLAG, NULL, FILTERS | LIVE, AT(matrix), 0, 0,
     "the channels of IR are the cells [out][in] of a matrix: every output sums over all inputs"},
    {NULL, "resample-ir", 0, OPTION_FLAG, NULL, FILTERS | LIVE, AT(resample_ir), 0, 0,
     "convert IR to the sample rate of IN (live: of the device), keeping its frequency response; without this, differing rates are an error"},

    {"Layer", "input", 'i', OPTION_TEXT, "X", LAYER, AT(input), 0, 0,
     "the layer's input, [batch, in, size...]"},
    {NULL, "weight", 'w', OPTION_TEXT, "W", LAYER, AT(weight), 0, 0,
     "its weights, [out, in/groups, kernel...]"},
    {NULL, "bias", 0, OPTION_TEXT, "B", LAYER, AT(bias), 0, 0,
     "its bias, [out], added to every output (default: none)"},
    {NULL, "grad-output", 0, OPTION_TEXT, "GY", LAYER, AT(grad_output), 0, 0,
     "the gradient of its output, [batch, out, output size...]"},
    {NULL, "output", 0, OPTION_TEXT, "FILE", LAYER, AT(output), 0, 0,
     "where the result goes: the output, or the gradient of the input or of the weights"},
    {NULL, "grad-bias", 0, OPTION_TEXT, "GB", LAYER, AT(grad_bias), 0, 0,
     "backward-weight also writes the gradient of the bias here"},
    {NULL, "input-shape", 0, OPTION_TEXT, "N,C,H,W", LAYER, AT(input_shape), 0, 0,
     "for backward-data: the shape of the input, which a stride leaves open"},
    {NULL, "kernel-shape", 0, OPTION_TEXT, "R,S", LAYER, AT(kernel_shape), 0, 0,
     "for backward-weight: the kernel's extents; one number serves all axes"},
    {NULL, "stride", 0, OPTION_TEXT, "A,B", LAYER, AT(strides), 0, 0,
     "distance of outputs along each axis; one number serves all axes (default: 1)"},
    {NULL, "pad", 0, OPTION_TEXT, "TOP,LEFT[,BOTTOM,RIGHT]", LAYER, AT(pad), 0, 0,
     "zeros around the input: one number for all sides, one for both sides of each axis, or all begins and then all ends; negative numbers crop (default: 0)"},
    {NULL, "dilation", 0, OPTION_TEXT, "A,B", LAYER, AT(dilation), 0, 0,
     "distance of taps along each axis; one number serves all axes (default: 1)"},
    {NULL, "groups", 0, OPTION_NUMBER, "N", LAYER, AT(layer_groups), 1, 1 << 30,
     "groups of channels that do not mix (default: 1)"},
    {NULL, "relu", 0, OPTION_FLAG, NULL, LAYER, AT(relu), 0, 0,
     "forward sets negative outputs to 0, after the bias"},

    {"Files", "format", 'f', OPTION_SAMPLES, "TYPE", FILTERS, AT(format), 0, 0,
     "IN is raw samples of this type, and so is OUT if it is - or raw: SigMF names such as cf32_le, ri16_le, cu8, or f32le, s16le, u8"},
    {NULL, "ir-format", 0, OPTION_SAMPLES, "TYPE", FILTERS, AT(ir_format), 0, 0,
     "IR is raw samples of this type, one channel"},
    {NULL, "output-format", 'o', OPTION_SAMPLES, "TYPE", FILTERS | LIVE, AT(output_format), 0, 0,
     "sample type of OUT, for example i16, i24, f32 (default: that of IN, for live f32, as far as the file can hold it)"},
    {NULL, "rate", 'r', OPTION_NUMBER, "HZ", FILTERS, AT(rate), 1, UINT32_MAX,
     "sample rate of an IN that does not say it itself (raw, .npy)"},
    {NULL, "channels", 'c', OPTION_NUMBER, "N", FILTERS | JOIN, AT(channels), 1, 1 << 20,
     "channels of raw samples (default: 1)"},
    {NULL, "max-channels", 0, OPTION_NUMBER, "N", FILTERS | LIVE | JOIN, AT(max_channels), 1, 1 << 20,
     "refuse files of more channels (default: 1024)"},
    {NULL, "nan", 0, OPTION_CHOICE, "zero|propagate|error", FILTERS, AT(nan), 0, 0,
     "NaN and infinite samples of IN: replace by 0 and count, let them spread over the length of IR, or fail (default: zero)"},

    {NULL, "range", 0, OPTION_TEXT, "K/N", FILTERS, AT(range), 0, 0,
     "write the Kth of N shares of the result, and beside OUT the file OUT.range for `partita join`; the joined bits do not depend on N"},
    {NULL, "resume", 0, OPTION_FLAG, NULL, FILTERS, AT(resume), 0, 0,
     "write to OUT.partial first and note how far it is; go on from there if an earlier run was stopped, to the same bits"},

    {"Computation", "engine", 'e', OPTION_TEXT, "NAME", FILTERS | LIVE | PLAN | LAYER, AT(engine), 0, 0,
     "use this engine, for example cpu/direct or cpu/overlap-save (default: the cheapest)"},
    {NULL, "device", 'd', OPTION_TEXT, "NAME", FILTERS | PLAN | LAYER, AT(device), 0, 0,
     "where to compute (default: cpu)"},
    {NULL, "threads", 't', OPTION_NUMBER, "N", FILTERS | PLAN, AT(threads), 1, 4096,
     "above 1, work on large pieces with this many threads, or with --block on the partitions of a stream (default: 1, as a stream)"},
    {NULL, "block", 'b', OPTION_NUMBER, "N", FILTERS | PLAN, AT(block), 1, 1 << 24,
     "frames per call; convolve and correlate also add at most this delay to a live pipe (default: whatever is fastest)"},
    {NULL, "threads", 't', OPTION_NUMBER, "N", LAYER, AT(layer_threads), 1, 4096,
     "work with this many threads; the result is the same (default: all cores)"},
    {NULL, "workspace-limit", 0, OPTION_NUMBER, "BYTES", LAYER, AT(workspace_limit), 1, MAX_SIZE,
     "use no more working memory than this beside the arrays and the packed weights (default: no limit)"},
    {NULL, "precision", 'p', OPTION_CHOICE, "auto|f32|f64", FILTERS, AT(precision), 0, 0,
     "compute in float or double; auto takes double when IN or IR is stored in it (default: auto)"},

    {"Problem", "taps", 0, OPTION_NUMBER, "N", PLAN, AT(taps), 1, MAX_SIZE,
     "length of the filter (default: 4096)"},
    {NULL, "latency", 0, OPTION_NUMBER, "N", PLAN, AT(latency), 0, MAX_SIZE,
     "largest delay allowed, in frames (default: 0 with --block, as a live filter has it, else any)"},
    {NULL, "whole-blocks", 0, OPTION_FLAG, NULL, PLAN, AT(whole_blocks), 0, 0,
     "every call holds a multiple of --block frames: long filters cost less then"},
    {NULL, "channels", 'c', OPTION_NUMBER, "N", PLAN, AT(channels), 1, 1 << 20,
     "input channels (default: 1)"},
    {NULL, "out-channels", 0, OPTION_NUMBER, "N", PLAN, AT(out_channels), 1, 1 << 20,
     "output channels (default: as --channels)"},
    {NULL, "groups", 0, OPTION_NUMBER, "N", PLAN, AT(groups), 1, 1 << 20,
     "groups of channels that do not mix (default: one a channel if in and out are as many, else 1)"},
    {NULL, "size", 0, OPTION_NUMBER, "N", PLAN, AT(size), 1, MAX_SIZE,
     "a signal of N frames, instead of a stream; full result unless --first and --last say otherwise"},
    {NULL, "parts", 0, OPTION_TEXT, "TAPS,SIGNAL", PLAN, AT(parts), 0, 0,
     "let cpu/blocks cut taps and signal into parts of these sizes, and print the schedule"},
    {NULL, "type", 0, OPTION_CHOICE, "f32|f64|cf32|cf64", PLAN, AT(type), 0, 0,
     "type of the signal (default: f32)"},
    {NULL, "taps-type", 0, OPTION_CHOICE, "same|real", PLAN, AT(taps_type), 0, 0,
     "type of the taps: the signal's own or its real counterpart (default: same)"},
    {NULL, "correlate", 0, OPTION_FLAG, NULL, PLAN, AT(correlate), 0, 0,
     "correlation instead of convolution"},
    {NULL, "measure", 0, OPTION_FLAG, NULL, PLAN, AT(measure), 0, 0,
     "time the likely choices instead of estimating them"},
    {NULL, "calibrate", 0, OPTION_FLAG, NULL, PLAN, AT(calibrate), 0, 0,
     "measure this machine first and store the result in the cache folder"},

    {"Audio", "ir", 'i', OPTION_LIST, "IR", LIVE, AT(irs), 0, 0,
     "the impulse response to filter with; may be given several times, keys n and p then change between them"},
    {NULL, "device", 'd', OPTION_TEXT, "DEVICE", LIVE, AT(audio_device), 0, 0,
     "the audio device, for both directions: its index in `partita devices` or part of its name there (default: the system's)"},
    {NULL, "input", 0, OPTION_TEXT, "DEVICE", LIVE, AT(audio_input), 0, 0,
     "the device to listen to, if it is another one"},
    {NULL, "output", 0, OPTION_TEXT, "DEVICE", LIVE, AT(audio_output), 0, 0,
     "the device to play on, if it is another one; of the same API as the input"},
    {NULL, "channels", 'c', OPTION_NUMBER, "N", LIVE, AT(channels), 1, 1024,
     "input channels (default: as many as IR has, 2 if that is 1 and with --matrix; not more than the device has)"},
    {NULL, "out-channels", 0, OPTION_NUMBER, "N", LIVE, AT(out_channels), 1, 1024,
     "output channels (default: what IR makes of the input; more than that for one input and one response alone)"},
    {NULL, "rate", 'r', OPTION_NUMBER, "HZ", LIVE, AT(rate), 1, 1 << 24,
     "sample rate to run the device at (default: that of IR if the device has it, else its own)"},
    {NULL, "block", 'b', OPTION_NUMBER, "N", LIVE, AT(block), 0, 65536,
     "frames per callback; 0 leaves it to the device (default: 0)"},
    {NULL, "latency", 0, OPTION_TEXT, "low|high|SECONDS", LIVE, AT(audio_latency), 0, 0,
     "latency to ask the device for (default: low)"},
    {NULL, "threads", 't', OPTION_NUMBER, "N", LIVE, AT(threads), 1, 4096,
     "work on the filter with this many threads; the device's then waits for the others, which have ordinary priority (default: 1, the device's alone)"},
    {NULL, "dry", 0, OPTION_REAL, "DB", LIVE, AT(dry), -300, 300,
     "play the input too, amplified by this many decibels (default: not at all)"},
    {NULL, "fade", 0, OPTION_REAL, "MS", LIVE, AT(fade), 0, 60000,
     "milliseconds to fade from one filter to the next (default: 50)"},
    {NULL, "max-taps", 0, OPTION_NUMBER, "N", LIVE, AT(max_taps), 1, 1 << 27,
     "keep room for filters of up to N taps when files are read again (default: the longest IR); with --measure, frames of the responses (default: a second)"},
    {NULL, "limiter", 0, OPTION_CHOICE, "on|off", LIVE, AT(limiter), 0, 0,
     "hold the output within full scale (default: on)"},
    {NULL, "duration", 0, OPTION_REAL, "SECONDS", LIVE, AT(duration), 0, 1000000000,
     "end after this time of the device (default: never); with --measure, length of the sweep (default: 3)"},
    {NULL, "record", 0, OPTION_TEXT, "OUT", LIVE, AT(record), 0, 0,
     "write what is played to this file too"},
    {NULL, "measure", 0, OPTION_TEXT, "OUT", LIVE, AT(measure_to), 0, 0,
     "play a sweep of -12 dB, changed by --gain up to +12, on output 1, print the round-trip latency to each input and write the impulse responses to this file"},
    {NULL, "retry", 0, OPTION_FLAG, NULL, LIVE, AT(retry), 0, 0,
     "when the device is lost wait for it and go on, recording to OUT-2, OUT-3 and so on; also wait for it at the start"},
    {NULL, "strict", 0, OPTION_FLAG, NULL, LIVE, AT(strict), 0, 0,
     "exit with status 3 if samples were lost: underflows and overflows"},
    {NULL, "calls", 0, OPTION_TEXT, "CSV", LIVE, AT(calls), 0, 0,
     "write the time that each callback took to this file"},

    {"Report", "stats", 's', OPTION_FLAG, NULL, FILTERS, AT(stats), 0, 0,
     "print peak, RMS, clipped and invalid samples, latency, tail, speed and the time of calls on standard error"},
    {NULL, "json", 0, OPTION_FLAG, NULL, FILTERS, AT(json), 0, 0,
     "print the same as JSON, on standard output unless that carries the samples"},
    {NULL, "json", 0, OPTION_FLAG, NULL, LIVE, AT(json), 0, 0,
     "print one line of JSON a second on standard output, and one more at the end"},
    {NULL, "json", 0, OPTION_FLAG, NULL, DEVICES, AT(json), 0, 0,
     "print the list as JSON: objects of the kind audio, then those of the kind compute"},
    {NULL, "quiet", 'q', OPTION_FLAG, NULL, FILTERS | LIVE, AT(quiet), 0, 0,
     "no warnings and no progress; errors only"},
    {NULL, "verbose", 'v', OPTION_FLAG, NULL, FILTERS | LAYER, AT(verbose), 0, 0,
     "print on standard error what was decided and why"},
    {NULL, "verbose", 'v', OPTION_FLAG, NULL, LIVE, AT(verbose), 0, 0,
     "print on standard error what was decided and why, and what the audio libraries say"},
    {NULL, "verbose", 'v', OPTION_FLAG, NULL, DEVICES, AT(verbose), 0, 0,
     "print on standard error what the audio libraries say"},
    {NULL, "man", 0, OPTION_FLAG, NULL, HELP, AT(man), 0, 0,
     "print the manual page as roff"},
    {NULL, "completion", 0, OPTION_CHOICE, "none|bash|zsh|fish", HELP, AT(completion), 0, 0,
     "print completions for this shell"},
    {NULL, "help", 'h', OPTION_FLAG, NULL, FILTERS | LIVE | DEVICES | PLAN | JOIN | LAYER | HELP, AT(help), 0, 0,
     "print this text"},
};
// clang-format on
const size_t n_option_rows = sizeof option_rows / sizeof *option_rows;

enum { MAX_ROWS = sizeof option_rows / sizeof *option_rows };

void option_help(const struct option_row *row, enum command command, char text[OPTION_HELP_SIZE])
{
    bool rename = command == COMMAND_CORRELATE;
    size_t n = 0;
    for (const char *c = row->help; *c && n + 1 < OPTION_HELP_SIZE;) {
        size_t length = strcspn(c, " ,;:");
        bool is_operand = rename && length == 2 && strncmp(c, "IR", 2) == 0;
        length += strspn(c + length, " ,;:");
        const char *word = is_operand ? "TEMPLATE" : "";
        int made = snprintf(text + n, OPTION_HELP_SIZE - n, "%s%.*s", word,
                            (int)length - 2 * is_operand, c + 2 * is_operand);
        n += (size_t)made;
        c += length;
    }
}

bool command_find(const char *name, enum command *ret_command)
{
    for (int c = 0; c < N_COMMANDS; c++) {
        if (strcmp(name, command_rows[c].name) != 0) continue;
        *ret_command = (enum command)c;
        return true;
    }
    return false;
}

const char *operand_name(const struct settings *settings, int i)
{
    if (strcmp(settings->operands[i], "-") != 0) return settings->operands[i];
    return i == 2 ? "standard output" : "standard input";
}

size_t options_max_channels(const struct settings *settings)
{
    return settings->max_channels == NOT_GIVEN ? 1024 : (size_t)settings->max_channels;
}

static bool store_number(const struct option_row *row, int64_t *field, const char *value,
                         struct fault *fault)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno == EINVAL)
        return fault_set(fault, "--%s %s: is not a whole number", row->name, value);
    if (errno == ERANGE || n < row->low || n > row->high)
        return fault_set(fault, "--%s %s: is not between %lld and %lld", row->name, value,
                         (long long)row->low, (long long)row->high);
    *field = n;
    return true;
}

static bool store_real(const struct option_row *row, double *field, const char *value,
                       struct fault *fault)
{
    char *end;
    double x = strtod(value, &end);
    if (end == value || *end || !isfinite(x))
        return fault_set(fault, "--%s %s: is not a number", row->name, value);
    if (row->low != row->high && (x < (double)row->low || x > (double)row->high))
        return fault_set(fault, "--%s %s: is not between %lld and %lld", row->name, value,
                         (long long)row->low, (long long)row->high);
    *field = x;
    return true;
}

static bool store_choice(const struct option_row *row, int *field, const char *value,
                         struct fault *fault)
{
    size_t n = strlen(value);
    const char *word = row->argument;
    for (int i = 0; word; i++) {
        size_t length = strcspn(word, "|");
        if (length == n && strncmp(word, value, n) == 0) {
            *field = i;
            return true;
        }
        word = word[length] ? word + length + 1 : NULL;
    }
    return fault_set(fault, "--%s %s: is none of %s", row->name, value, row->argument);
}

static bool store_in_list(const struct option_row *row, struct word_list *list, const char *value,
                          struct fault *fault)
{
    if (list->n == MAX_WORDS)
        return fault_set(fault, "--%s: given more than %d times", row->name, MAX_WORDS);
    list->words[list->n++] = value;
    return true;
}

// Whoever takes -o for "output" gives it the name of a file.
static bool store_samples(const struct option_row *row, enum command command, const char **field,
                          const char *value, struct fault *fault)
{
    struct encoding ignored;
    const char *operands = command_rows[command].operands;
    *field = value;
    if (encoding_parse(value, &ignored)) return true;
    return fault_set(fault, "--%s %s: no such sample type%s%s", row->name, value,
                     *operands ? "; files are named without options: " : "", operands);
}

static bool store(const struct option_row *row, struct settings *settings, const char *value,
                  struct fault *fault)
{
    void *field = (char *)settings + row->field;
    switch (row->kind) {
    case OPTION_FLAG:
        *(int *)field = 1;
        return true;
    case OPTION_TEXT:
        *(const char **)field = value;
        return true;
    case OPTION_NUMBER:
        return store_number(row, field, value, fault);
    case OPTION_REAL:
        return store_real(row, field, value, fault);
    case OPTION_LIST:
        return store_in_list(row, field, value, fault);
    case OPTION_CHOICE:
        return store_choice(row, field, value, fault);
    case OPTION_SAMPLES:
        return store_samples(row, settings->command, field, value, fault);
    }
    return false;
}

// getopt's two tables for one command; a long option's value is its row + 256.
static void list_options(enum command command, struct option longs[MAX_ROWS + 1],
                         char shorts[2 * MAX_ROWS + 2])
{
    size_t n = 0, m = 0;
    shorts[m++] = ':';
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(row->commands & 1u << command)) continue;
        int argument = row->kind == OPTION_FLAG ? no_argument : required_argument;
        longs[n++] = (struct option){row->name, argument, NULL, (int)i + 256};
        if (!row->letter) continue;
        shorts[m++] = row->letter;
        if (argument) shorts[m++] = ':';
    }
    longs[n] = (struct option){0};
    shorts[m] = 0;
}

static const struct option_row *row_of(enum command command, int found)
{
    if (found >= 256) return &option_rows[found - 256];
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].letter == found && option_rows[i].commands & 1u << command)
            return &option_rows[i];
    return NULL;
}

// What getopt does not take for an option: nothing, the beginning of several, or a flag with a
// value.
static bool explain_unknown(enum command command, const char *written, struct fault *fault)
{
    char names[256] = "";
    const size_t length = strcspn(written, "=");
    int n = 0;
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(row->commands & 1u << command) || strncmp(written, "--", 2) != 0 || length <= 2 ||
            strncmp(row->name, written + 2, length - 2) != 0)
            continue;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s--%s", n++ ? ", " : "", row->name);
    }
    if (n == 0) return fault_set(fault, "%s: no such option", written);
    return n > 1 ? fault_set(fault, "%s: ambiguous: %s", written, names)
                 : fault_set(fault, "%s: %s takes no value", written, names);
}

static bool take_option(struct settings *s, int found, const char *written, bool given[MAX_ROWS],
                        struct fault *fault)
{
    if (found == ':') return fault_set(fault, "%s: needs a value", written);
    const struct option_row *row = found == '?' ? NULL : row_of(s->command, found);
    if (!row) return explain_unknown(s->command, written, fault);
    bool *before = &given[row - option_rows];
    if (*before && row->kind != OPTION_FLAG && row->kind != OPTION_LIST)
        return fault_set(fault, "--%s: given twice", row->name);
    *before = true;
    return store(row, s, optarg, fault);
}

static bool take_operands(struct settings *s, int argc, char **argv, struct fault *fault)
{
    const struct command_row *command = &command_rows[s->command];
    int n = argc - optind;
    for (int i = 0; i < n && i < MAX_OPERANDS; i++) s->operands[i] = argv[optind + i];
    s->files = argv + optind;
    s->n_operands = n;
    if (n == command->n_operands || (command->n_operands < 0 && n >= -command->n_operands) ||
        s->help || (n == 0 && s->command == COMMAND_HELP))
        return true;
    if (command->n_operands == 0)
        return fault_set(fault, "takes no files, but %d %s named%s", n, n == 1 ? "is" : "are",
                         s->command == COMMAND_LIVE ? "; filters go by --ir" : "");
    const bool files = 1u << s->command & (FILTERS | JOIN);
    return fault_set(fault, "needs %s, but %d %s%s %s given", command->operands, n,
                     files ? "file " : "", n == 1 ? "name" : "names", n == 1 ? "is" : "are");
}

bool options_parse(struct settings *ret_settings, enum command command, int argc, char **argv,
                   struct fault *fault)
{
    struct settings s = {.command = command, .argc = argc, .argv = argv, .stride = 1};
    struct option longs[MAX_ROWS + 1];
    char shorts[2 * MAX_ROWS + 2];
    bool given[MAX_ROWS] = {false};
    int found;
    s.first = s.last = s.max_lag = NOT_GIVEN;
    s.max_channels = NOT_GIVEN;
    s.threads = 1;
    s.layer_groups = 1;
    s.taps = 4096;
    s.latency = NOT_GIVEN;
    s.dry = -INFINITY;
    s.fade = 50;
    s.duration = INFINITY;
    list_options(command, longs, shorts);
    opterr = 0;
    optind = 1;
    for (;;) {
        int before = optind;
        found = getopt_long(argc, argv, shorts, longs, NULL);
        if (found < 0) break;
        if (!take_option(&s, found, argv[optind > before ? optind - 1 : before], given, fault))
            return false;
    }
    if (!take_operands(&s, argc, argv, fault)) return false;
    *ret_settings = s;
    return true;
}
