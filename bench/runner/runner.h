// SPDX-License-Identifier: MIT
// What the benchmark programs share: a workload (the data and the filter of one case), contenders (whoever can run
// it), and the runner that checks every contender against an oracle, then times them in turn, repetition by
// repetition, so that drift of the machine hits all alike. Output is CSV on stdout, everything else goes to stderr.
#ifndef BENCH_H
#define BENCH_H

#include <partita/partita.h>

#include <stdio.h>

// A layer, run in one direction: x, h and y of the workload are then x, w and y of forward; gy, w and gx of backward
// data; x, gy and gw of backward weight. The problem's types and batch are the workload's.
struct layer {
    struct partita_problem problem;
    enum partita_direction direction;
};

// One case: y = h * x, as a causal stream in blocks of `block`, or as the full result of a bounded signal (block 0).
struct workload {
    const char *name;
    enum partita_type signal, taps;
    size_t n_frames, n_taps;
    size_t block, latency;            // streams: frames a call, added delay allowed
    size_t warm;                      // streams: of n_frames the first ones, which fill the history and are not timed
    size_t stride;                    // decimation [1]
    size_t in_channels, out_channels; // [1]; every output hears every input of its group
    size_t groups;                    // [1]
    size_t lags;     // signals: not convolution but correlation, and of its result the lags -lags to lags alone
    int repetitions; // [the suite's]
    bool extra;      // run with --all, or when it is named by --case
    const struct layer *layer;         // instead of all the above but name and types [NULL]
    void (*shape)(struct workload *w); // changes the noise that workload_create makes [leaves it]
    // Filled by workload_create:
    size_t x_bytes, h_bytes, y_bytes;
    size_t layer_batch;
    size_t timed;    // n_frames - warm
    size_t n_out;    // output frames a channel
    char *x, *h, *y; // x [in][n_frames], h [out][in/groups][n_taps], y [out][n_out]
    struct oracle *oracle;
    double *right; // of layers, the oracle's values
    size_t n_right;
};

// A bank of independent channels as a stream, timed after its history has filled.
#define BENCH_BANK(name_, channels_, block_, n_taps_, n_timed_)                                                        \
    .name = name_, .in_channels = channels_, .out_channels = channels_, .groups = channels_, .block = block_,          \
    .n_taps = n_taps_, .warm = n_taps_, .n_frames = (n_taps_) + (n_timed_)

struct contender;

// Makes the contender ready for a workload: fills state, pass, close, gate. Returns false when it cannot run this
// workload; `reason` says why when that is worth telling.
typedef bool open_fn(struct contender *contender, const struct workload *w);

// Runs the whole workload once from a fresh state into w->y and returns the seconds it took, set-up of the fresh
// state and the w->warm first frames excluded; NAN if it failed. `calls`, when not NULL, receives the seconds of each
// timed process call, w->timed / w->block of them.
typedef double pass_fn(void *state, const struct workload *w, double *calls);

// Filters the block of frames that begins at `at`.
typedef void call_fn(void *state, const struct workload *w, size_t at);

struct contender {
    const char *name;   // in the CSV
    const char *engine; // ours: engine to force, NULL for the planner's pick
    const char *device; // ours: NULL for the CPU
    int threads;
    open_fn *open;
    // Set by open:
    void *state;
    pass_fn *pass;
    bool (*fetch)(void *state, const struct workload *w); // brings the last result into w->y; NULL: it is there
    void (*close)(void *state);
    double gate;  // largest relative L2 error that counts as a right answer; 0: produces no samples
    size_t delay; // y[0] is sample -delay of the result
    size_t bytes; // resident outside this program's heap, and workspace; the runner adds the heap
    char reason[160];
};

// What was measured of one contender.
struct result {
    const char *name;
    double least_ns; // an item, of all repetitions
};

// What one program is made of.
struct suite {
    const char *program;
    const struct workload *cases;
    size_t n_cases;
    const struct contender *contenders; // tried on every case, in this order
    size_t n_contenders;
    bool cold;     // leave the library untouched before the first case: no host model is measured
    bool per_call; // also take the time of every single call:
    bool raw;      // .. of the last pass; else the least of all passes
    int repetitions;
    double patience;      // seconds: a contender whose first pass took longer is timed by that pass alone [0: none is]
    double warm_up;       // seconds for all to run in before they are timed, and a second first pass: a device loads
                          // code when it is first asked, and raises its clock under load [0: none]
    int thread_counts[2]; // rows of contenders with threads 0; {1, 0}: one thread alone
    void (*judge)(const struct workload *w, const struct result *results, size_t n); // told of every case [NULL]
};

// Parses --list, --all, --case, --threads, --quick, --calls; runs the suite. Returns the exit status: 0, 1 if a
// contender gave a wrong answer or could not be run, 2 for usage.
int bench_main(int argc, char **argv, const struct suite *suite);

// Monotonic time in seconds.
double bench_now(void);

// Order of doubles, for qsort.
int bench_compare(const void *a, const void *b);

// Allocation that ends the program when it fails: a benchmark without memory has nothing to report.
void *bench_allocate(size_t bytes);

// Fills reals with reproducible noise in [-0.5, 0.5).
void bench_noise(void *samples, size_t n_reals, bool f64, uint64_t seed);

static inline bool type_is_f64(enum partita_type type)
{
    return type == PARTITA_F64 || type == PARTITA_CF64;
}

static inline bool type_is_complex(enum partita_type type)
{
    return type == PARTITA_CF32 || type == PARTITA_CF64;
}

// The body of a stream's pass: all calls in order, the timed ones timed.
double bench_calls(const struct workload *w, double *calls, call_fn *call, void *state);

// The 99.9th percentile over the mean.
double calls_flatness(const double *calls, size_t n);

// Writes the seconds of each call to FOLDER/CASE.CONTENDER.csv. Returns false, and says so, if that fails.
bool calls_write(const char *folder, const struct workload *w, const struct contender *contender, const double *calls);

// Fills in defaults and data. `quick` takes an eighth of the frames that are timed.
void workload_create(struct workload *w, bool quick);
void workload_destroy(struct workload *w);

// Relative L2 error of w->y against direct sums, in float64 for f32 signals, else in long double, over about a thousand
// positions: both ends and random ones. The sums are computed once and kept in the workload.
double oracle_error(struct workload *w, size_t delay);
void oracle_destroy(struct oracle *oracle);

// The problem of a workload that is no layer.
struct partita_problem workload_problem(const struct workload *w);

// The same three for layers, which the ones above call; layer_problem has types and batch filled in.
void layer_create(struct workload *w, bool quick);
double layer_error(struct workload *w);
double gate_layer(const struct workload *w);
struct partita_problem layer_problem(const struct workload *w);

// Gates, as the tests have them: direct sums 4 u sqrt(taps), transforms 3 u sqrt(log2 n). A peer is held to a looser
// one, which finds a wrong answer, not a less exact one.
double gate_direct(const struct workload *w);
double gate_transform(const struct workload *w);
double gate_peer(const struct workload *w);

// Measures the host model that plans of ours use from then on.
void ours_calibrate(void);

// Contenders; bench/ours/ours.c and bench/peers/*.c.
open_fn ours_stream, ours_signal;
open_fn ours_stream_whole;    // promising whole blocks, as peers demand them
open_fn ours_stream_swap;     // while the stream fades from one filter to another
open_fn ours_stream_parallel; // channels only: with one there is little to share
open_fn ours_layer;           // filters are packed beforehand
open_fn ours_resident;        // bench_gpu: layers and signals on a device, arrays resident there
open_fn peer_fma_peak;
open_fn peer_onednn, peer_onednn_reorder, peer_onednn_winograd, peer_openblas;   // bench_layer
open_fn peer_cufft_complex, peer_cufft_real, peer_cufft_blocks, peer_two_passes; // bench_gpu
open_fn peer_liquid_fir, peer_liquid_fft;
open_fn peer_zita, peer_afir;                           // bench_stream
open_fn peer_textbook_uniform, peer_textbook_two_stage; // likewise
open_fn peer_scipy_oaconvolve, peer_scipy_fftconvolve;
open_fn peer_scipy_correlate;                // cases with lags
open_fn peer_scipy_rfft;                     // layers of causal lines
open_fn ours_command, peer_ffmpeg, peer_sox; // bench_cli, with what command.h asks of the workload

#endif
