// SPDX-License-Identifier: MIT
// The parsed command line. One table (option_table.c) describes every option; the parser, --help,
// the manual page and the shell completions are generated from it.
#ifndef PARTITA_APPS_OPTIONS_H
#define PARTITA_APPS_OPTIONS_H

#include <math.h>
#include <partita/partita.h>

#include "base/fault.h"
#include "base/nearest.h"
#include "io/formats/sofa.h"

// clang-format off
// All subcommands: the name in constants, and in functions and on the command line.
#define EACH_COMMAND(DO) \
    DO(CONVOLVE, convolve) DO(CORRELATE, correlate) DO(CHANNELIZE, channelize) DO(PAIRS, pairs) \
    DO(LIVE, live) DO(CONTROL, control) DO(DEVICES, devices) DO(PLAN, plan) DO(JOIN, join) \
    DO(DECONVOLVE, deconvolve) DO(IDENTIFY, identify) DO(LAYER, layer) DO(DESIGN, design) \
    DO(INVERT, invert) DO(RESPONSE, response) DO(HELP, help)
#define COMMAND_NUMBER(name, word) COMMAND_##name,

enum command { EACH_COMMAND(COMMAND_NUMBER) N_COMMANDS };
// clang-format on

// In the order of the words in the option table.
enum result_mode { MODE_FULL = 0, MODE_SAME, MODE_VALID };
enum precision { PRECISION_AUTO = 0, PRECISION_F32, PRECISION_F64 };
enum nan_policy { NAN_ZERO = 0, NAN_PROPAGATE, NAN_ERROR };
enum matrix_order { MATRIX_OUT_IN = 0, MATRIX_IN_OUT };
enum tail { TAIL_YES = 0, TAIL_NO };
enum dither { DITHER_NO = 0, DITHER_TPDF };
enum stack { STACK_LINEAR = 0, STACK_PHASE_WEIGHTED, STACK_NONE };
enum normalised { NORMALISED_NO = 0, NORMALISED_PLAIN, NORMALISED_ZERO_MEAN };
enum combine { COMBINE_AVERAGE = 0, COMBINE_SUM, COMBINE_CASCADE, COMBINE_CHANNELS };
enum matching { MATCHING_YES = 0, MATCHING_NO };
enum limiter { LIMITER_ON = 0, LIMITER_OFF };
enum shell { SHELL_NONE = 0, SHELL_BASH, SHELL_ZSH, SHELL_FISH };

// The value of a number option that was not given.
#define NOT_GIVEN INT64_MIN

// The value of a number of frames that was given as a time, until options_resolve_times.
#define GIVEN_AS_TIME (INT64_MIN + 1)

enum { MAX_OPERANDS = 3, MAX_WORDS = 64, MAX_TIMES = 16 };

// The values of an option that may be given several times.
struct word_list {
    const char *words[MAX_WORDS];
    int n;
};

// A number of frames that was given as a time.
struct given_time {
    const struct option_row *row;
    const char *text;
    double seconds;
};

enum { MIN_GAIN = -300 }; // dB

// The value of --gain auto.
#define GAIN_AUTO INFINITY

struct settings {
    enum command command;
    const char *operands[MAX_OPERANDS];
    int n_operands;
    int n_irs;    // operands before IN
    char **files; // all operands
    // Of convolve: a configuration, which is operands[0] then, and there are no operands for IR.
    const char *config;
    bool is_route; // it is a chain (route/route.h), or empty, with --rate-out alone
    int argc;      // all arguments, the command's name first
    char **argv;
    struct given_time times[MAX_TIMES];
    int n_times;

    int mode, tail, precision, nan, dither, stack;
    int64_t first, last, max_lag, up, stride;
    int64_t window, overlap; // of pairs; 0: not given
    int64_t block, threads;
    int threads_given, launched; // launched: by a launcher of MPI, perhaps as the only process
    const char *engine, *device;
    double gain, dry, wet;  // dB
    double normalize;       // dB; NaN: not given
    double tune, frequency; // Hz, infinite: not given
    double rate_out;        // Hz; 0: not given
    int64_t delay, ir_length, ir_fade;
    double azimuth, elevation;                          // degrees; NaN: not given
    int matrix, matrix_order, true_stereo, resample_ir; // the others that concern it set matrix
    const char *layout;
    double lfe; // dB
    const char *format, *ir_format, *ir_channel, *output_format;
    double rate;                                             // Hz; 0: not given
    int64_t channels, max_channels, max_memory, error_reach; // 0: not given
    const char *range;
    int resume, shared; // shared: by several processes (processes/processes.h)
    int normalised;
    int64_t peaks, min_distance; // 0: not given
    double threshold;            // NaN: not given
    double mad;                  // 0: not given
    const char *annotate, *list;
    const char *templates; // is operands[0] then, and there are no operands but IN
    double progress;       // seconds between lines; 0: not given
    int iq;
    int stats, json, quiet, verbose, help;

    int64_t taps, latency, out_channels, groups, size;
    const char *parts;
    int whole_blocks, type, taps_type, measure, calibrate, table;

    // live
    struct word_list irs;
    const char *audio_device, *audio_input, *audio_output, *audio_latency;
    const char *record, *measure_to, *calls, *control, *osc, *scene, *web, *name;
    double fade, duration;             // milliseconds, seconds
    int64_t max_taps, cancel, far_end; // cancel: frames; far_end: inputs. 0: not given
    int limiter, retry, strict, no_connect;
    // layer
    const char *input, *weight, *bias, *grad_output, *output, *grad_bias, *input_shape,
        *kernel_shape;
    const char *strides, *pad, *boundary, *dilation;
    int64_t layer_groups, layer_threads, workspace_limit;
    int relu;
    // design
    const char *cutoff, *plot;
    double width, attenuation, ripple; // Hz, dB, dB; 0: chosen
    int64_t design_taps;               // 0: chosen
    int equiripple, minimum_phase;
    struct word_list sections;
    const char *gains, *delays, *invert; // of each way of a crossover
    double design_tail;                  // dB; 0: chosen
    int linear_phase, exact_gains;
    // invert
    struct partita_correction correction; // what has an option of its own
    const char *target;
    int match, positions, replace;
    // response
    int64_t align, gate;   // frames; gate 0: none
    double resample, trim; // Hz, 0: as it is; dB, NaN: not given
    int combine;

    int man, completion;
};

enum option_kind {
    OPTION_FLAG,         // int: 1 when given
    OPTION_TEXT,         // const char *
    OPTION_LIST,         // struct word_list
    OPTION_FLAG_OR_WORD, // int: 1 without a value, 2 with the word in `argument`
    OPTION_CHOICE,       // int: which of the words separated by '|' in `argument`
    OPTION_SAMPLE_TYPE,  // const char *: the name of a sample encoding
    // int64_t within [low, high]. The suffixes of these and of the following are in base/number.h.
    OPTION_NUMBER,
    OPTION_THREADS, // also `auto`: as many as the process has processors
    OPTION_BYTES,
    OPTION_FRAMES, // also a time; see options_resolve_times
    // double within [low, high], unless both are 0
    OPTION_REAL,
    OPTION_DECIBELS,
    OPTION_LEVEL,     // decibels, 0 without a value
    OPTION_GAIN,      // decibels, or "auto" for GAIN_AUTO
    OPTION_FREQUENCY, // Hz
    OPTION_RATE,      // Hz, also a fraction
    OPTION_SECONDS,
    OPTION_MILLISECONDS,
};

struct option_row {
    const char *group; // heading in the help; NULL: the same as in the previous row
    const char *name;
    char letter; // 0: none
    enum option_kind kind;
    const char *argument; // name of the value in the help; for a choice, its words
    unsigned commands;    // bits 1 << enum command
    size_t field;         // offset in struct settings
    int64_t low, high;    // of a number or real
    const char *help;
};

// The option of this name that a command has; NULL: none.
const struct option_row *option_find(enum command command, const char *name);

// Whether the value of an option may be left out; then it follows an equals sign.
bool option_value_is_optional(const struct option_row *row);

struct command_row {
    const char *name, *operands, *summary, *text;
    int n_operands; // negative: at least that many
};

// A command line and what it does, in one sentence.
struct example {
    const char *command, *text;
};

enum { MAX_EXAMPLES = 4 };
extern const struct example command_examples[N_COMMANDS][MAX_EXAMPLES]; // the rest is NULL

enum { MAX_OPTION_ROWS = 240 };
extern const struct option_row option_rows[];
extern const size_t n_option_rows;
extern const struct command_row command_rows[N_COMMANDS];

// The help of a row for a command: for correlate, IR becomes TEMPLATE.
enum { OPTION_HELP_SIZE = 320 };
void option_help(const struct option_row *row, enum command command, char text[OPTION_HELP_SIZE]);

// Parses the arguments after the command's name. False: a usage error, described in `fault`.
bool options_parse(struct settings *ret_settings, enum command command, int argc, char **argv,
                   struct fault *fault);

// Converts the times that were given for numbers of frames to frames at `rate` Hz. False, with a
// fault, if the rate is 0, which means unknown, or a number is out of range. May be called again
// with another rate.
bool options_resolve_times(struct settings *settings, double rate, struct fault *fault);

// --gain in decibels; 0 for auto, which is applied to the result.
double options_gain(const struct settings *settings);

// The direction of --azimuth and --elevation, in front without them.
struct sofa_direction options_direction(const struct settings *settings);

// Whether the filters of live can be replaced by commands while it plays.
bool options_are_steered(const struct settings *settings);

// Operand i for messages: "-" becomes standard input or, as OUT, standard output.
const char *operand_name(const struct settings *settings, int i);

// What makes a run compute its result in segments, so that no sample depends on where the run
// began: "mpirun", "--range", "--resume", or NULL.
const char *options_sharded_by(const struct settings *settings);

// Whether peaks are to be found; then OUT may be left out: operands[2] is NULL.
bool options_want_peaks(const struct settings *settings);

// The value of --max-channels or its default.
size_t options_max_channels(const struct settings *settings);

// False, with a fault, if there is no such command.
bool command_find(const char *name, enum command *ret_command, struct fault *fault);

#endif
