// SPDX-License-Identifier: MIT
// The tables of commands, examples and options.
#include <stddef.h>

#include "options.h"

const struct command_row command_rows[N_COMMANDS] = {
    {"convolve", "IR... IN OUT", "filters IN with the impulse response IR",
     "The result is scipy.signal.convolve(IN, IR, mode): it includes the tail, and the latency of "
     "the engine is removed. Of several IR files the channels are taken one file after the other. "
     "With + between them, as in low-cut.npy+hall.wav, they are filters one after the other, of "
     "which one is made, in double: each has 1 channel or as many as come in, or is a matrix by "
     "--matrix, --true-stereo or a word before its name, as in matrix:hall.wav. A + in the name of "
     "a file that exists separates nothing. With --config FILE, or --rate-out alone, only IN and "
     "OUT "
     "are named. ",
     -3},
    {"correlate", "TEMPLATE IN [OUT]", "correlates IN with TEMPLATE",
     "The result is scipy.signal.correlate(IN, TEMPLATE, mode), in which a complex template is "
     "conjugated. Sample k of the full result belongs to lag k - (length of TEMPLATE - 1). With "
     "--peaks or --threshold it prints where TEMPLATE is found: the sample of IN at which it "
     "begins, the same interpolated, in seconds if the rate is known, and the magnitude and the "
     "phase (in radians) of the result. With --templates FILES only IN is named. ",
     3},
    {"channelize", "TABLE IN OUT", "takes many channels of IN, each into an output of its own",
     "TABLE is CSV, whose first line names the columns, or JSON (.json), an array of objects with "
     "these names: name; centre, in Hz from the middle of IN, or frequency, absolute; rate of the "
     "output; and as wanted bandwidth, beyond which everything is removed (default: the rate, or "
     "with taps all of IN), transition, the width of both slopes of the filter within it (default: "
     "a tenth), attenuation (default: 80 dB), or taps, a file with a filter at the rate of IN, "
     "times n if that of the output is n/d of it. OUT is a folder of SigMF recordings, or a name "
     "with {name} in it, such as {name}.wav or pipes/{name}. Outputs are as long as IN; like those "
     "of convolve --tune --tail no they have the delay of the filter. If an output fails, the "
     "others are completed, and the exit status is 1. ",
     3},
    {"pairs", "IN... OUT", "correlates all pairs of signals",
     "The signals are the channels of every IN; all have the same rate and length. OUT is an .npy "
     "array of f32 with a row for each pair, (0, 0), (0, 1) and so on to (1, 1), (1, 2), and a "
     "column for each lag: column --max-lag + l of pair (i, j) is the sum over t of x_i[t] "
     "x_j[t + l]; at l > 0, j is later. Prints the lag of the largest magnitude of each pair. ",
     -2},
    {"live", "", "filters the input of an audio device and plays the result",
     "Needs --ir, --scene or --measure. In a terminal it shows levels, load and latency, and "
     "accepts keys; the key ? lists them. SIGHUP reloads the current filter, SIGINT fades out and "
     "ends, a second SIGINT ends at once. ",
     0},
    {"control", "PATH COMMAND...", "steers a running partita live --control PATH",
     "Sends the command to the socket PATH and prints the answer, one line of JSON. The exit "
     "status is 1 if the command failed. ",
     -2},
    {"devices", "", "lists the compute devices and the audio devices", "", 0},
    {"plan", "", "shows which engine is chosen for a filter, and why",
     "Prints the chosen engine, for every other engine its estimated cost or why it cannot be "
     "used, latency, memory and the error bound. For a partitioned filter it also prints the "
     "partitions, the mean and the worst cost of a call, and a timeline of the work in which each "
     "column shows its most expensive call. With --calibrate it first measures this machine and "
     "stores the result for all later runs. ",
     0},
    {"join", "OUT SHARD...", "joins the shards that convolve and correlate wrote with --range",
     "Every SHARD needs its record, the file SHARD.range, beside it. Shards of different results "
     "or inputs are refused, and so are missing, overlapping, truncated and changed ones. OUT has "
     "the same bytes as with --range 1/1. ",
     -2},
    {"deconvolve", "SWEEP RECORDING OUT", "computes the impulse response of a recorded sweep",
     "SWEEP is the signal that was played, with one channel; RECORDING may begin before it, must "
     "go on after it, and may have several channels, which OUT has too. OUT begins at the first "
     "frame of RECORDING: the latency that is printed for each channel is where its response has "
     "its peak, and --first leaves out what is before it. ",
     3},
    {"identify", "SIGNAL RECORDING OUT", "computes impulse responses from music and its recording",
     "An adaptive filter learns the paths from the channels of SIGNAL to each channel of "
     "RECORDING, "
     "which may begin earlier or later. OUT has one response after the other, as --matrix of "
     "convolve reads them: of channel 1 of RECORDING those of all channels of SIGNAL, then of "
     "channel 2. It begins shortly before the first peak. Prints for each channel of RECORDING the "
     "latency of its peak, by how much the power is larger than without the filter's estimate "
     "(ERLE), the error of the estimate that is to be expected (misadjustment), and how much of "
     "the material it took to come within 3 dB of that. ",
     3},
    {"layer", "forward|backward-data|backward-weight",
     "runs a layer of a neural network on .npy arrays",
     "Arrays are [batch, channels, 1 to 3 axes] and [out, in/groups, kernel], all of type f4 or "
     "all of type f8; f2 and integers of 1 and 2 bytes count as f4, wider integers as f8. The "
     "kernel is correlated with the input, as is usual in neural networks. forward reads --input, "
     "--weight and --bias; backward-data reads --grad-output and --weight and writes the gradient "
     "of the input, whose shape is --input-shape; backward-weight reads --input and --grad-output "
     "and writes the gradient of the weights, whose kernel has --kernel-shape. ",
     1},
    {"design", "KIND [FILE|HZ...] OUT", "designs the taps of a filter and writes them to a file",
     "KIND is lowpass, highpass, bandpass, bandstop, hilbert, differentiator, raised-cosine, "
     "root-raised-cosine, table, eq or crossover. FILE of table has a frequency and decibels on "
     "each line. FILE of eq is a list of Equalizer APO, Room EQ Wizard or AutoEq, or a "
     "configuration of CamillaDSP, of which the first channel is used; --section adds to it or "
     "replaces it. The ways of crossover, each a channel of OUT, meet at each HZ, or "
     "HZ:lr8 for another family and order than lr4: lr2 to lr16, bw1 to bw16, bessel1 to bessel8. "
     "Bands begin half of --width beside each --cutoff; without --taps the fewest taps are chosen "
     "that reach --attenuation and --ripple. Prints ripple, attenuation and delay of the taps as "
     "they are stored in OUT, which may be .wav, .npy, .txt, .raw and the like. For raised cosines "
     "--cutoff is half of the symbol rate and --width is twice --cutoff times the roll-off. ",
     -2},
    {"invert", "RESPONSE... FILTER", "designs the filter that corrects a loudspeaker in a room",
     "RESPONSE is a measured impulse response, also as text from REW (.txt), or a text of "
     "frequencies, decibels and phase (.txt, .frd, .csv), which has minimum phase if it states "
     "none, and whose decibels are relative to 94 dB if their mean is above 40 dB. Several "
     "RESPONSE files are positions of the microphone. Each channel is "
     "a loudspeaker, for which FILTER has a channel. Prints how far the mean of the positions is "
     "from --target before and after, and what the filter does. ",
     -2},
    {"response", "RESPONSE... OUT", "cuts, windows, smooths, combines and converts responses",
     "RESPONSE is as for invert. Each is resampled, trimmed, aligned, cut, gated and faded; then "
     "all "
     "are combined, with --window and --smoothing; then the result gets minimum phase and its "
     "level, "
     "in this order. OUT may be .wav, .npy and the like, or a text of frequencies, decibels and "
     "phases after the peak (.txt, .frd, .csv). ",
     -2},
    {"help", "[COMMAND]", "shows this help, the manual page or shell completions", "", 1},
};

#define COMMAND_BIT(name, word) name = 1 << COMMAND_##name,
enum { EACH_COMMAND(COMMAND_BIT) FILTERS = CONVOLVE | CORRELATE };
#define AT(field) offsetof(struct settings, field)
#define MAX_SIZE (INT64_MAX / 4)

// clang-format off
const struct example command_examples[N_COMMANDS][MAX_EXAMPLES] = {
#include "examples.inc"
};

// One file for each heading of the help.
const struct option_row option_rows[] = {
#include "options/result.inc"
#include "options/peaks.inc"
#include "options/design.inc"
#include "options/correct.inc"
#include "options/layer.inc"
#include "options/files.inc"
#include "options/computation.inc"
#include "options/problem.inc"
#include "options/audio.inc"
#include "options/report.inc"
    {NULL, "help", 'h', OPTION_FLAG, NULL, (1u << N_COMMANDS) - 1, AT(help), 0, 0,
     "print this help"},
};
// clang-format on
const size_t n_option_rows = sizeof option_rows / sizeof *option_rows;
_Static_assert(sizeof option_rows / sizeof *option_rows <= MAX_OPTION_ROWS,
               "raise MAX_OPTION_ROWS");
