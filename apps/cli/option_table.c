// SPDX-License-Identifier: MIT
// The tables of commands and options.
#include <stddef.h>

#include "options.h"

const struct command_row command_rows[N_COMMANDS] = {
    {"convolve", "IR IN OUT", "filters IN with the impulse response IR",
     "The result is scipy.signal.convolve(IN, IR, mode): it includes the tail, and the latency of "
     "the engine is removed. ",
     3},
    {"correlate", "TEMPLATE IN OUT", "correlates IN with TEMPLATE",
     "The result is scipy.signal.correlate(IN, TEMPLATE, mode), in which a complex template is "
     "conjugated. Sample k of the full result belongs to lag k - (length of TEMPLATE - 1). ",
     3},
    {"live", "", "filters the input of an audio device and plays the result",
     "Needs --ir or --measure. In a terminal it shows levels, load and latency, and accepts keys. "
     "SIGHUP reloads the current filter, SIGINT fades out and ends, a second SIGINT ends at once. ",
     0},
    {"devices", "", "lists the compute devices and the audio devices", "", 0},
    {"plan", "", "shows which engine is chosen for a filter, and why",
     "Prints the chosen engine, for every other engine its estimated cost or why it cannot be "
     "used, "
     "latency, memory and the error bound. For a partitioned filter it also prints the partitions, "
     "the mean and the worst cost of a call, and a timeline of the work in which each column shows "
     "its most expensive call. With --calibrate it first measures this machine and stores the "
     "result for all later runs. ",
     0},
    {"join", "OUT SHARD...", "joins the shards that convolve and correlate wrote with --range",
     "Every SHARD needs its record, the file SHARD.range, beside it. Shards of different results "
     "are refused, and so are missing, overlapping and truncated ones. OUT has the same bytes as "
     "with --range 1/1. ",
     -2},
    {"layer", "forward|backward-data|backward-weight",
     "runs a layer of a neural network on .npy arrays",
     "Arrays are [batch, channels, 1 to 3 axes] and [out, in/groups, kernel], all of type f4 or "
     "all of type f8. The kernel is correlated with the input, as is usual in neural networks. "
     "forward reads --input, --weight and --bias; backward-data reads --grad-output and --weight "
     "and writes the gradient of the input, whose shape is --input-shape; backward-weight reads "
     "--input and --grad-output and writes the gradient of the weights, whose kernel has "
     "--kernel-shape. ",
     1},
    {"help", "[COMMAND]", "shows this help, the manual page or shell completions", "", 1},
};

#define FILTERS (1u << COMMAND_CONVOLVE | 1u << COMMAND_CORRELATE)
#define LIVE (1u << COMMAND_LIVE)
#define DEVICES (1u << COMMAND_DEVICES)
#define PLAN (1u << COMMAND_PLAN)
#define JOIN (1u << COMMAND_JOIN)
#define LAYER (1u << COMMAND_LAYER)
#define HELP (1u << COMMAND_HELP)
#define EVERY_COMMAND (FILTERS | LIVE | DEVICES | PLAN | JOIN | LAYER | HELP)
#define AT(field) offsetof(struct settings, field)
#define MAX_SIZE (INT64_MAX / 4)

// clang-format off
const struct option_row option_rows[] = {
    {"Result", "mode", 'm', OPTION_CHOICE, "full|same|valid", FILTERS, AT(mode), 0, 0,
     "which part of the result to write, as in SciPy: all of it, the centre with the length of "
     "IN, or only where both overlap completely (default: full)"},
    {NULL, "first", 0, OPTION_NUMBER, "N", 1u << COMMAND_CONVOLVE, AT(first), -MAX_SIZE, MAX_SIZE,
     "start at this sample of the full result; input that no written sample depends on is skipped"},
    {NULL, "first", 0, OPTION_NUMBER, "N", 1u << COMMAND_CORRELATE, AT(first), -MAX_SIZE, MAX_SIZE,
     "start at this lag; input that no written sample depends on is skipped"},
    {NULL, "first", 0, OPTION_NUMBER, "N", PLAN, AT(first), -MAX_SIZE, MAX_SIZE,
     "first sample of the full result, or with --correlate first lag; needs --size"},
    {NULL, "last", 0, OPTION_NUMBER, "N", 1u << COMMAND_CONVOLVE, AT(last), -MAX_SIZE, MAX_SIZE,
     "stop before this sample of the full result; beyond its end samples are 0"},
    {NULL, "last", 0, OPTION_NUMBER, "N", 1u << COMMAND_CORRELATE, AT(last), -MAX_SIZE, MAX_SIZE,
     "stop before this lag; beyond the full result samples are 0"},
    {NULL, "last", 0, OPTION_NUMBER, "N", PLAN, AT(last), -MAX_SIZE, MAX_SIZE,
     "sample of the full result, or with --correlate lag, to stop before; needs --size"},
    {NULL, "max-lag", 0, OPTION_NUMBER, "N", 1u << COMMAND_CORRELATE, AT(max_lag), 0, MAX_SIZE,
     "write only the lags -N to N"},
    {NULL, "stride", 0, OPTION_NUMBER, "N", FILTERS | PLAN, AT(stride), 1, 1 << 30,
     "keep every Nth sample of the result (decimation)"},
    {NULL, "gain", 'g', OPTION_REAL, "DB", FILTERS | LIVE, AT(gain), MIN_GAIN, -MIN_GAIN,
     "amplify the result by this many decibels"},
    {NULL, "matrix", 0, OPTION_FLAG, NULL, FILTERS | LIVE, AT(matrix), 0, 0,
     "the channels of IR are a matrix [out][in] of impulse responses: every output is a sum over"
     " all inputs"},
    {NULL, "resample-ir", 0, OPTION_FLAG, NULL, FILTERS, AT(resample_ir), 0, 0,
     "resample IR to the sample rate of IN; without this option different rates are an error"},
    {NULL, "resample-ir", 0, OPTION_FLAG, NULL, LIVE, AT(resample_ir), 0, 0,
     "resample IR to the sample rate of the device; without this option different rates are an "
     "error"},

    {"Layer", "input", 'i', OPTION_TEXT, "X", LAYER, AT(input), 0, 0,
     "the layer's input, [batch, in, size...]"},
    {NULL, "weight", 'w', OPTION_TEXT, "W", LAYER, AT(weight), 0, 0,
     "its weights, [out, in/groups, kernel...]"},
    {NULL, "bias", 0, OPTION_TEXT, "B", LAYER, AT(bias), 0, 0,
     "its bias, [out] (default: none)"},
    {NULL, "grad-output", 0, OPTION_TEXT, "GY", LAYER, AT(grad_output), 0, 0,
     "the gradient of its output, [batch, out, output size...]"},
    {NULL, "output", 0, OPTION_TEXT, "FILE", LAYER, AT(output), 0, 0,
     "write the result to this file: the output, or the gradient of the input or of the weights"},
    {NULL, "grad-bias", 0, OPTION_TEXT, "GB", LAYER, AT(grad_bias), 0, 0,
     "backward-weight: also write the gradient of the bias to this file"},
    {NULL, "input-shape", 0, OPTION_TEXT, "N,C,H,W", LAYER, AT(input_shape), 0, 0,
     "backward-data: shape of the input, which the output does not determine if there is a stride"},
    {NULL, "kernel-shape", 0, OPTION_TEXT, "R,S", LAYER, AT(kernel_shape), 0, 0,
     "backward-weight: size of the kernel; one number applies to all axes"},
    {NULL, "stride", 0, OPTION_TEXT, "A,B", LAYER, AT(strides), 0, 0,
     "stride along each axis; one number applies to all axes (default: 1)"},
    {NULL, "pad", 0, OPTION_TEXT, "TOP,LEFT[,BOTTOM,RIGHT]", LAYER, AT(pad), 0, 0,
     "zero padding of the input: one number for all sides, one for both sides of each axis, or "
     "all begins and then all ends; negative numbers crop (default: 0)"},
    {NULL, "dilation", 0, OPTION_TEXT, "A,B", LAYER, AT(dilation), 0, 0,
     "dilation along each axis; one number applies to all axes (default: 1)"},
    {NULL, "groups", 0, OPTION_NUMBER, "N", LAYER, AT(layer_groups), 1, 1 << 30,
     "number of channel groups (default: 1)"},
    {NULL, "relu", 0, OPTION_FLAG, NULL, LAYER, AT(relu), 0, 0,
     "forward: set negative outputs to 0, after adding the bias"},

    {"Files", "format", 'f', OPTION_SAMPLE_TYPE, "TYPE", FILTERS, AT(format), 0, 0,
     "IN is raw samples of this type, and so is OUT if it is - or a raw file: SigMF names such "
     "as cf32_le, ri16_le, cu8, or f32le, s16le, u8"},
    {NULL, "ir-format", 0, OPTION_SAMPLE_TYPE, "TYPE", FILTERS, AT(ir_format), 0, 0,
     "IR is raw samples of this type, with one channel"},
    {NULL, "output-format", 'o', OPTION_SAMPLE_TYPE, "TYPE", FILTERS, AT(output_format), 0, 0,
     "sample type of OUT, for example i16, i24, f32 (default: that of IN, or the closest that "
     "the format of OUT can store)"},
    {NULL, "output-format", 'o', OPTION_SAMPLE_TYPE, "TYPE", LIVE, AT(output_format), 0, 0,
     "sample type of the recording, for example i16, i24, f32 (default: f32, or the closest that"
     " its format can store)"},
    {NULL, "rate", 'r', OPTION_NUMBER, "HZ", FILTERS, AT(rate), 1, UINT32_MAX,
     "sample rate of IN if its format does not store one (raw, .npy)"},
    {NULL, "channels", 'c', OPTION_NUMBER, "N", FILTERS | JOIN, AT(channels), 1, 1 << 20,
     "number of channels of raw samples (default: 1)"},
    {NULL, "max-channels", 0, OPTION_NUMBER, "N", FILTERS | LIVE | JOIN,
     AT(max_channels), 1, 1 << 20,
     "refuse files with more channels (default: 1024)"},
    {NULL, "nan", 0, OPTION_CHOICE, "zero|propagate|error", FILTERS, AT(nan), 0, 0,
     "NaN and infinite samples of IN: replace them by 0 and count them, let them spread over the"
     " length of IR, or fail (default: zero)"},

    {NULL, "range", 0, OPTION_TEXT, "K/N", FILTERS, AT(range), 0, 0,
     "write only shard K of N of the result, and beside it OUT.range, its record for `partita "
     "join`; the joined result does not depend on N"},
    {NULL, "resume", 0, OPTION_FLAG, NULL, FILTERS, AT(resume), 0, 0,
     "write to OUT.partial and record the progress; if an earlier run was stopped, continue it, "
     "with the same result"},

    {"Computation", "engine", 'e', OPTION_TEXT, "NAME", FILTERS | LIVE | PLAN | LAYER,
     AT(engine), 0, 0,
     "use this engine, for example cpu/direct or cpu/overlap-save (default: the one with the "
     "lowest cost)"},
    {NULL, "device", 'd', OPTION_TEXT, "NAME", FILTERS | PLAN | LAYER, AT(device), 0, 0,
     "compute device, for example cpu, cuda or cuda:1 (default: cpu)"},
    {NULL, "threads", 't', OPTION_NUMBER, "N", FILTERS | PLAN, AT(threads), 1, 4096,
     "number of threads; above 1 the signal is filtered in long segments or, with --block, as a "
     "stream whose partitions the threads share (default: 1)"},
    {NULL, "block", 'b', OPTION_NUMBER, "N", FILTERS, AT(block), 1, 1 << 24,
     "frames per call, and the maximum delay when IN is a pipe (default: whatever is fastest)"},
    {NULL, "block", 'b', OPTION_NUMBER, "N", PLAN, AT(block), 1, 1 << 24,
     "frames per call (default: any number)"},
    {NULL, "threads", 't', OPTION_NUMBER, "N", LAYER, AT(layer_threads), 1, 4096,
     "number of threads; the result does not depend on it (default: as many as the work pays for)"},
    {NULL, "workspace-limit", 0, OPTION_NUMBER, "BYTES", LAYER, AT(workspace_limit), 1, MAX_SIZE,
     "maximum working memory in addition to the arrays and the packed weights (default: "
     "unlimited)"},
    {NULL, "precision", 'p', OPTION_CHOICE, "auto|f32|f64", FILTERS, AT(precision), 0, 0,
     "compute in float or double; auto is double if IN or IR is stored as double (default: auto)"},

    {"Problem", "taps", 0, OPTION_NUMBER, "N", PLAN, AT(taps), 1, MAX_SIZE,
     "length of the filter (default: 4096)"},
    {NULL, "latency", 0, OPTION_NUMBER, "N", PLAN, AT(latency), 0, MAX_SIZE,
     "maximum latency in frames (default: 0 with --block, as for a live filter, else unlimited)"},
    {NULL, "whole-blocks", 0, OPTION_FLAG, NULL, PLAN, AT(whole_blocks), 0, 0,
     "every call has a multiple of --block frames, which makes long filters cheaper"},
    {NULL, "channels", 'c', OPTION_NUMBER, "N", PLAN, AT(channels), 1, 1 << 20,
     "input channels (default: 1)"},
    {NULL, "out-channels", 0, OPTION_NUMBER, "N", PLAN, AT(out_channels), 1, 1 << 20,
     "output channels (default: the same as --channels)"},
    {NULL, "groups", 0, OPTION_NUMBER, "N", PLAN, AT(groups), 1, 1 << 20,
     "number of channel groups (default: one per channel if inputs and outputs are equally many,"
     " else 1)"},
    {NULL, "size", 0, OPTION_NUMBER, "N", PLAN, AT(size), 1, MAX_SIZE,
     "a signal of N frames instead of a stream; computes the full result unless --first or "
     "--last is given"},
    {NULL, "parts", 0, OPTION_TEXT, "TAPS,SIGNAL", PLAN, AT(parts), 0, 0,
     "partition taps and signal into these sizes, with cpu/blocks, and print the schedule"},
    {NULL, "type", 0, OPTION_CHOICE, "f32|f64|cf32|cf64", PLAN, AT(type), 0, 0,
     "type of the signal (default: f32)"},
    {NULL, "taps-type", 0, OPTION_CHOICE, "same|real", PLAN, AT(taps_type), 0, 0,
     "type of the taps: that of the signal or its real counterpart (default: same)"},
    {NULL, "correlate", 0, OPTION_FLAG, NULL, PLAN, AT(correlate), 0, 0,
     "correlate instead of convolving"},
    {NULL, "measure", 0, OPTION_FLAG, NULL, PLAN, AT(measure), 0, 0,
     "time the most promising engines instead of estimating them"},
    {NULL, "calibrate", 0, OPTION_FLAG, NULL, PLAN, AT(calibrate), 0, 0,
     "measure this machine first and store the result in the cache folder"},

    {"Audio", "ir", 'i', OPTION_LIST, "IR", LIVE, AT(irs), 0, 0,
     "impulse response of the filter; may be given several times, then the keys n and p switch "
     "between them"},
    {NULL, "device", 'd', OPTION_TEXT, "DEVICE", LIVE, AT(audio_device), 0, 0,
     "audio device for both directions: its index in `partita devices` or part of its name there"
     " (default: the system's)"},
    {NULL, "input", 0, OPTION_TEXT, "DEVICE", LIVE, AT(audio_input), 0, 0,
     "input device, if it differs from the output device"},
    {NULL, "output", 0, OPTION_TEXT, "DEVICE", LIVE, AT(audio_output), 0, 0,
     "output device, if it differs from the input device; both must have the same API"},
    {NULL, "channels", 'c', OPTION_NUMBER, "N", LIVE, AT(channels), 1, 1024,
     "input channels (default: as many as IR has, or 2 if IR has one or with --matrix; at most "
     "as many as the device has)"},
    {NULL, "out-channels", 0, OPTION_NUMBER, "N", LIVE, AT(out_channels), 1, 1024,
     "output channels (default: what IR and the input determine; only one response for one input"
     " can have more)"},
    {NULL, "rate", 'r', OPTION_NUMBER, "HZ", LIVE, AT(rate), 1, 1 << 24,
     "sample rate of the device (default: that of IR if the device supports it, else the "
     "device's own)"},
    {NULL, "block", 'b', OPTION_NUMBER, "N", LIVE, AT(block), 0, 65536,
     "frames per callback; with 0 the device chooses (default: 0)"},
    {NULL, "latency", 0, OPTION_TEXT, "low|high|SECONDS", LIVE, AT(audio_latency), 0, 0,
     "latency to request from the device (default: low)"},
    {NULL, "threads", 't', OPTION_NUMBER, "N", LIVE, AT(threads), 1, 4096,
     "number of threads for the filter; the audio thread then waits for the others, which have "
     "ordinary priority (default: 1, the audio thread alone)"},
    {NULL, "dry", 0, OPTION_REAL, "DB", LIVE, AT(dry), -300, 300,
     "also play the unfiltered input, with this gain in decibels (default: off)"},
    {NULL, "fade", 0, OPTION_REAL, "MS", LIVE, AT(fade), 0, 60000,
     "length of the crossfade from one filter to the next, in milliseconds (default: 50)"},
    {NULL, "max-taps", 0, OPTION_NUMBER, "N", LIVE, AT(max_taps), 1, 1 << 27,
     "reserve space for filters of up to N taps when files are reloaded (default: the longest "
     "IR); with --measure, length of the responses in frames (default: one second)"},
    {NULL, "limiter", 0, OPTION_CHOICE, "on|off", LIVE, AT(limiter), 0, 0,
     "limit the output to full scale (default: on)"},
    {NULL, "duration", 0, OPTION_REAL, "SECONDS", LIVE, AT(duration), 0, 1000000000,
     "end after this time (default: never); with --measure, length of the sweep (default: 3)"},
    {NULL, "record", 0, OPTION_TEXT, "OUT", LIVE, AT(record), 0, 0,
     "also write the output to this file"},
    {NULL, "measure", 0, OPTION_TEXT, "OUT", LIVE, AT(measure_to), 0, 0,
     "play a sweep of -12 dB on output 1 (--gain changes its level, up to +12), print the "
     "round-trip latency to each input and write the impulse responses to this file"},
    {NULL, "retry", 0, OPTION_FLAG, NULL, LIVE, AT(retry), 0, 0,
     "when the device is lost, wait for it and continue, recording to OUT-2, OUT-3 and so on; "
     "also wait for it at the start"},
    {NULL, "strict", 0, OPTION_FLAG, NULL, LIVE, AT(strict), 0, 0,
     "exit with status 3 if samples were lost (underflows and overflows)"},
    {NULL, "calls", 0, OPTION_TEXT, "CSV", LIVE, AT(calls), 0, 0,
     "write the time of each callback to this file"},

    {"Report", "stats", 's', OPTION_FLAG, NULL, FILTERS, AT(stats), 0, 0,
     "print peak, RMS, clipped and non-finite samples, latency, tail, speed and call times on "
     "standard error"},
    {NULL, "json", 0, OPTION_FLAG, NULL, FILTERS, AT(json), 0, 0,
     "print the same as JSON on standard output, or on standard error if OUT is -"},
    {NULL, "json", 0, OPTION_FLAG, NULL, LIVE, AT(json), 0, 0,
     "print one line of JSON per second on standard output, and one at the end"},
    {NULL, "json", 0, OPTION_FLAG, NULL, DEVICES, AT(json), 0, 0,
     "print the list as JSON: objects of the kind audio, then those of the kind compute"},
    {NULL, "quiet", 'q', OPTION_FLAG, NULL, FILTERS | LIVE, AT(quiet), 0, 0,
     "print errors only, neither warnings nor progress"},
    {NULL, "verbose", 'v', OPTION_FLAG, NULL, FILTERS | LAYER, AT(verbose), 0, 0,
     "print decisions and their reasons on standard error"},
    {NULL, "verbose", 'v', OPTION_FLAG, NULL, LIVE, AT(verbose), 0, 0,
     "print decisions and their reasons on standard error, and the messages of the audio "
     "libraries"},
    {NULL, "verbose", 'v', OPTION_FLAG, NULL, DEVICES, AT(verbose), 0, 0,
     "print the messages of the audio libraries on standard error"},
    {NULL, "man", 0, OPTION_FLAG, NULL, HELP, AT(man), 0, 0,
     "print the manual page as roff"},
    {NULL, "completion", 0, OPTION_CHOICE, "none|bash|zsh|fish", HELP, AT(completion), 0, 0,
     "print completions for this shell"},

        {NULL, "help", 'h', OPTION_FLAG, NULL, EVERY_COMMAND, AT(help), 0, 0,
     "print this help"},
};
// clang-format on
const size_t n_option_rows = sizeof option_rows / sizeof *option_rows;
_Static_assert(sizeof option_rows / sizeof *option_rows <= MAX_OPTION_ROWS,
               "raise MAX_OPTION_ROWS");
