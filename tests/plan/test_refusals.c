// SPDX-License-Identifier: MIT
// Every public function that returns a status, called with bad arguments: it logs exactly one line,
// which says why, or none if it is real-time safe. Functions that have a plan use its log, others
// that of PARTITA_LOG; here both are stderr. The list is compared with the public headers.
#include "refusals.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static void plans(void **state)
{
    struct partita_plan *plan;
    size_t size[PARTITA_MAX_RANK];
    struct partita_load load;
    const struct partita_problem layer_of_complex = {SIZE(9, 9), TYPES(CF32, CF32), KERNEL(3, 3)};
    const struct partita_options tiles = {.engine = "cpu/partitioned"};
    const struct partita_options device = {.device = "abacus"};
    const struct partita_options threads = {.threads = -1};
    const struct partita_problem no_size = {KERNEL(3)}, no_output = {SIZE(2), KERNEL(3)};
    (void)state;
    REFUSED(ARG, "ret_plan is NULL", partita_plan_create(&layer, NULL, NULL));
    REFUSED(ARG, "problem is NULL", partita_plan_create(NULL, NULL, &plan));
    REFUSED(ARG, "problem.size[0]", partita_plan_create(&no_size, NULL, &plan));
    REFUSED(ARG, "leaves no output", partita_plan_create(&no_output, NULL, &plan));
    REFUSED(ARG, "options.threads = -1", partita_plan_create(&layer, &threads, &plan));
    REFUSED(DEVICE, "abacus", partita_plan_create(&layer, &device, &plan));
    REFUSED(UNSUPPORTED, "cpu/partitioned: ", partita_plan_create(&layer, &tiles, &plan));
    REFUSED(UNSUPPORTED, "complex problems have one axis, this has 2",
            partita_plan_create(&layer_of_complex, NULL, &plan));
    REFUSED(ARG, "problem is NULL", partita_problem_output_size(NULL, size));
    REFUSED(ARG, "ret_size is NULL", partita_problem_output_size(&layer, NULL));
    REFUSED(ARG, "stream", partita_problem_output_size(&endless, size));
    REFUSED(ARG, "leaves no output", partita_problem_output_size(&no_output, size));
    REFUSED(ARG, "plan is NULL", partita_plan_load(NULL, &load));
    REFUSED(ARG, "ret_load is NULL", partita_plan_load(o.stream_plan, NULL));
    REFUSED(STATE, "of a bounded problem", partita_plan_load(o.layer, &load));
    REFUSED(ARG, "plan is NULL", partita_plan_prepare(NULL));
    REFUSED(ARG, "device is NULL", partita_device_describe(NULL, memory, 10));
    REFUSED(ARG, "text is NULL", partita_device_describe("cpu", NULL, 10));
}

static void filters(void **state)
{
    struct partita_filter *filter;
    const struct partita_taps neither = {0}, few = {.dense = memory, .dense_count = 3},
                              crooked = {.dense = memory + 2, .dense_count = 81},
                              bias = {.dense = memory, .dense_count = 81, .bias = memory + 1};
    const struct partita_path path = {.length = 5, .taps = memory + 1};
    const struct partita_taps paths = {.paths = &path, .path_count = 1};
    const struct partita_call taps = {.taps = memory}, workspace = {.workspace = memory + 8},
                              queue = {.queue = memory}, added = {.accumulate = true};
    (void)state;
    REFUSED(ARG, "plan is NULL", partita_filter_create(NULL, memory, &filter));
    REFUSED(ARG, "taps is NULL", partita_filter_create(o.layer, NULL, &filter));
    REFUSED(ARG, "ret_filter is NULL", partita_filter_create(o.layer, memory, NULL));
    REFUSED(ARG, "not aligned to 4", partita_filter_create(o.layer, memory + 1, &filter));
    REFUSED(ARG, "not aligned to 4", partita_filter_create(o.stream_plan, memory + 2, &filter));
    REFUSED(ARG, "taps is NULL", partita_filter_create_from(o.layer, NULL, &filter));
    REFUSED(ARG, "neither dense taps nor paths",
            partita_filter_create_from(o.layer, &neither, &filter));
    REFUSED(ARG, "dense_count = 3", partita_filter_create_from(o.layer, &few, &filter));
    REFUSED(ARG, "taps.dense is not aligned",
            partita_filter_create_from(o.layer, &crooked, &filter));
    REFUSED(ARG, "taps.bias is not aligned", partita_filter_create_from(o.layer, &bias, &filter));
    REFUSED(ARG, "path 0", partita_filter_create_from(o.stream_plan, &paths, &filter));
    REFUSED(ARG, "filter is NULL", partita_filter_update(NULL, memory, NULL, NULL));
    REFUSED(ARG, "taps is NULL", partita_filter_update(o.filter, NULL, NULL, NULL));
    REFUSED(ARG, "taps is not aligned", partita_filter_update(o.filter, memory + 1, NULL, NULL));
    REFUSED(ARG, "workspace is not aligned",
            partita_filter_update(o.filter, memory, NULL, &workspace));
    REFUSED(ARG, "call.taps", partita_filter_update(o.filter, memory, NULL, &taps));
    REFUSED(ARG, "call.accumulate", partita_filter_update(o.filter, memory, NULL, &added));
    REFUSED(UNSUPPORTED, "no queues", partita_filter_update(o.filter, memory, NULL, &queue));
    REFUSED(STATE, "without one", partita_filter_update(o.filter, memory, memory, NULL));
    REFUSED(STATE, "of streams", partita_filter_update(o.of_stream, memory, NULL, NULL));
}

static void directions(void **state)
{
    char *x = memory + 4096, *y = memory + 8192;
    const struct partita_call both = {.taps = memory}, crooked = {.workspace = memory + 16384 + 8},
                              queue = {.queue = memory}, added = {.accumulate = true},
                              unknown = {.reserved = {[6] = true}};
    (void)state;
    REFUSED(ARG, "plan is NULL", partita_forward(NULL, o.filter, y, x, NULL));
    REFUSED(ARG, "y is NULL", partita_forward(o.layer, o.filter, NULL, x, NULL));
    REFUSED(ARG, "x is NULL", partita_forward(o.layer, o.filter, y, NULL, NULL));
    REFUSED(ARG, "no call.taps", partita_forward(o.layer, NULL, y, x, NULL));
    REFUSED(ARG, "besides a filter", partita_forward(o.layer, o.filter, y, x, &both));
    REFUSED(ARG, "of another plan", partita_forward(o.layer, o.of_other, y, x, NULL));
    REFUSED(ARG, "y is not aligned", partita_forward(o.layer, o.filter, y + 1, x, NULL));
    REFUSED(ARG, "x is not aligned", partita_forward(o.layer, o.filter, y, x + 2, NULL));
    REFUSED(ARG, "workspace is not", partita_forward(o.layer, o.filter, y, x, &crooked));
    REFUSED(ARG, "y overlaps x", partita_forward(o.layer, o.filter, x, x, NULL));
    REFUSED(ARG, "y overlaps x", partita_forward(o.layer, o.filter, x, x, &added));
    REFUSED(UNSUPPORTED, "call.reserved", partita_forward(o.layer, o.filter, y, x, &unknown));
    REFUSED(UNSUPPORTED, "no queues", partita_forward(o.layer, o.filter, y, x, &queue));
    REFUSED(STATE, "of streams", partita_forward(o.stream_plan, o.of_stream, y, x, NULL));
    REFUSED(ARG, "gx is NULL", partita_backward_data(o.layer, o.filter, NULL, y, NULL));
    REFUSED(ARG, "gy is NULL", partita_backward_data(o.layer, o.filter, x, NULL, NULL));
    REFUSED(ARG, "gy is not", partita_backward_data(o.layer, o.filter, x, y + 1, NULL));
    REFUSED(UNSUPPORTED, "direction", partita_backward_data(o.other, o.of_other, x, y, NULL));
    REFUSED(STATE, "of streams", partita_backward_data(o.stream_plan, o.of_stream, x, y, NULL));
    REFUSED(ARG, "gw is NULL", partita_backward_weight(o.layer, NULL, x, y, NULL));
    REFUSED(ARG, "no call.saved", partita_backward_weight(o.layer, memory, NULL, y, NULL));
    REFUSED(ARG, "gy is NULL", partita_backward_weight(o.layer, memory, x, NULL, NULL));
    REFUSED(ARG, "gw is not", partita_backward_weight(o.layer, memory + 1, x, y, NULL));
    REFUSED(ARG, "call.taps", partita_backward_weight(o.layer, memory, x, y, &both));
    REFUSED(UNSUPPORTED, "direction", partita_backward_weight(o.other, memory, x, y, NULL));
    REFUSED(ARG, "gb is NULL", partita_backward_bias(o.layer, NULL, y, NULL));
    REFUSED(ARG, "gb is not", partita_backward_bias(o.layer, memory + 1, y, NULL));
    REFUSED(ARG, "gb overlaps gy", partita_backward_bias(o.layer, y + 4, y, NULL));
    REFUSED(ARG, "neither taps nor saved", partita_backward_bias(o.layer, memory, y, &both));
    REFUSED(STATE, "of streams", partita_backward_bias(o.stream_plan, memory, y, NULL));
}

static void streams(void **state)
{
    struct partita_stream *stream;
    struct partita_stream_stats stats;
    const size_t size = partita_stream_state_size(o.stream);
    float *const y[] = {(float *)memory};
    const float *const x[] = {(float *)memory};
    (void)state;
    REFUSED(ARG, "plan is NULL", partita_stream_open(NULL, o.of_stream, &stream));
    REFUSED(ARG, "filter is NULL", partita_stream_open(o.stream_plan, NULL, &stream));
    REFUSED(ARG, "ret_stream is NULL", partita_stream_open(o.stream_plan, o.of_stream, NULL));
    REFUSED(ARG, "of another plan", partita_stream_open(o.stream_plan, o.filter, &stream));
    REFUSED(STATE, "bounded", partita_stream_open(o.layer, o.filter, &stream));
    const struct partita_filter *const basis[] = {o.of_stream, o.filter};
    const double weights[] = {1, (double)NAN};
    REFUSED(ARG, "plan is NULL", partita_stream_open_morph(NULL, basis, 1, weights, &stream));
    REFUSED(ARG, "n_filters = 9",
            partita_stream_open_morph(o.stream_plan, basis, 9, weights, &stream));
    REFUSED(ARG, "filters[1]: of another plan",
            partita_stream_open_morph(o.stream_plan, basis, 2, weights, &stream));
    REFUSED(ARG, "not all of them are finite",
            partita_stream_open_morph(o.stream_plan, basis, 1, weights + 1, &stream));
    REFUSED(UNSUPPORTED, "cannot morph",
            partita_stream_open_morph(o.stream_plan, basis, 1, weights, &stream));
    REFUSED_SILENTLY(ARG, partita_stream_morph(NULL, weights, 0));
    REFUSED_SILENTLY(UNSUPPORTED, partita_stream_morph(o.stream, weights, 0));
    REFUSED(ARG, "stream is NULL", partita_stream_process_queued(NULL, y, x, 1, memory));
    REFUSED(ARG, "queue is NULL", partita_stream_process_queued(o.stream, y, x, 1, NULL));
    REFUSED(UNSUPPORTED, "no queues", partita_stream_process_queued(o.stream, y, x, 1, memory));
    REFUSED(ARG, "stream is NULL", partita_stream_save(NULL, memory));
    REFUSED(ARG, "state is NULL", partita_stream_save(o.stream, NULL));
    REFUSED(ARG, "stream is NULL", partita_stream_restore(NULL, memory, size));
    REFUSED(ARG, "state is NULL", partita_stream_restore(o.stream, NULL, size));
    REFUSED(STATE, "bytes", partita_stream_restore(o.stream, memory, size - 1));
    REFUSED(STATE, "damaged", partita_stream_restore(o.stream, memory, size));
    REFUSED(ARG, "stream is NULL", partita_stream_clone(NULL, &stream));
    REFUSED(ARG, "ret_stream is NULL", partita_stream_clone(o.stream, NULL));
    REFUSED_SILENTLY(ARG, partita_stream_status(NULL));
    REFUSED_SILENTLY(ARG, partita_stream_swap(NULL, o.of_stream, 0));
    REFUSED_SILENTLY(ARG, partita_stream_swap(o.stream, o.filter, 0));
    REFUSED_SILENTLY(ARG, partita_stream_stats(NULL, &stats));
    REFUSED_SILENTLY(STATE, partita_stream_stats(o.stream, &stats));
    assert_ok(partita_stream_swap(o.stream, o.of_stream, 8));
    if (!partita_stream_swapping(o.stream)) return;
    REFUSED(STATE, "swaps", partita_stream_save(o.stream, memory));
    REFUSED(STATE, "swaps", partita_stream_restore(o.stream, memory, size));
    REFUSED(STATE, "swaps", partita_stream_clone(o.stream, &stream));
}

static void banks(void **state)
{
    struct partita_bank *bank;
    struct partita_filter *filter;
    struct partita_stream_stats stats;
    size_t slot;
    const struct partita_bank_options none = {.n_taps = 4},
                                      half = {.slots = 1, .n_taps = 1, .signal = PARTITA_F16};
    (void)state;
    REFUSED(ARG, "options is NULL", partita_bank_create_sized(NULL, 0, &bank));
    REFUSED(ARG, "ret_bank is NULL", partita_bank_create(&none, NULL));
    REFUSED(ARG, "bank.slots = 0", partita_bank_create(&none, &bank));
    REFUSED(ARG, "bank.signal", partita_bank_create(&half, &bank));
    REFUSED(ARG, "bank is NULL", partita_bank_filter_create(NULL, memory, 1, &filter));
    REFUSED(ARG, "taps is NULL", partita_bank_filter_create(o.bank, NULL, 1, &filter));
    REFUSED(ARG, "taps is not aligned", partita_bank_filter_create(o.bank, memory + 1, 1, &filter));
    REFUSED(ARG, "= 5", partita_bank_filter_create(o.bank, memory, 5, &filter));
    REFUSED_SILENTLY(ARG, partita_bank_open(o.bank, o.filter, &slot));
    REFUSED_SILENTLY(ARG, partita_bank_close(NULL, 0));
    REFUSED_SILENTLY(STATE, partita_bank_close(o.bank, 0));
    REFUSED_SILENTLY(STATE, partita_bank_swap(o.bank, 0, o.filter, 0));
    REFUSED_SILENTLY(ARG, partita_bank_status(NULL));
    REFUSED_SILENTLY(STATE, partita_bank_stats(o.bank, &stats));
}

static void one_shots(void **state)
{
    float *x = (float *)memory, *h = x + 1000, *y = x + 2000;
    const struct partita_slice empty = {PARTITA_RANGE, 5, 5};
    const struct partita_options uses = {.filter_uses = 2}, engine = {.engine = "cpu/tail"};
    struct partita_problem problem;
    (void)state;
    REFUSED(ARG, "y is NULL", partita_convolve(PARTITA_F32, NULL, x, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "x is NULL", partita_correlate(PARTITA_F32, y, NULL, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "h is NULL", partita_convolve(PARTITA_F32, y, x, 9, NULL, 3, NULL, NULL));
    REFUSED(ARG, "slice", partita_convolve(PARTITA_F32, y, x, 0, h, 3, NULL, NULL));
    REFUSED(ARG, "slice", partita_convolve(PARTITA_F32, y, x, 9, h, 3, &empty, NULL));
    REFUSED(ARG, "99", partita_convolve((enum partita_type)99, y, x, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "filter_uses", partita_correlate(PARTITA_F32, y, x, 900, h, 900, NULL, &uses));
    REFUSED(ARG, "cpu/tail", partita_convolve(PARTITA_F32, y, x, 9, h, 3, NULL, &engine));
    REFUSED(ARG, "x is not", partita_convolve(PARTITA_F32, y, memory + 1, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "h is not", partita_correlate(PARTITA_F64, y, x, 9, memory + 4004, 3, NULL, NULL));
    REFUSED(ARG, "y overlaps x", partita_convolve(PARTITA_F32, x, x, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "y overlaps h", partita_correlate(PARTITA_F32, h, x, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "y is NULL",
            partita_correlate_normalised(PARTITA_F32, NULL, x, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "slice", partita_correlate_normalised(PARTITA_F32, y, x, 9, h, 0, NULL, NULL));
    REFUSED(ARG, "overlaps", partita_correlate_normalised(PARTITA_F32, x, x, 9, h, 3, NULL, NULL));
    REFUSED(UNSUPPORTED, "f16",
            partita_correlate_normalised(PARTITA_F16, y, x, 9, h, 3, NULL, NULL));
    REFUSED(ARG, "ret_problem is NULL",
            partita_slice_problem_sized(PARTITA_CONVOLVE, PARTITA_F32, 9, 3, NULL, NULL, 0));
    REFUSED(ARG, "slice",
            partita_slice_problem(PARTITA_CONVOLVE, PARTITA_F32, 9, 3, &empty, &problem));
}

static void spectra(void **state)
{
    struct partita_spectrum *spectrum;
    struct partita_saved *saved;
    const struct partita_slice empty = {PARTITA_RANGE, 5, 5};
    (void)state;
    REFUSED(ARG, "x is NULL", partita_spectrum_create(PARTITA_F32, NULL, 9, 0, NULL, &spectrum));
    REFUSED(ARG, "ret_spectrum is", partita_spectrum_create(PARTITA_F32, memory, 9, 0, NULL, NULL));
    REFUSED(ARG, "x is not",
            partita_spectrum_create(PARTITA_F32, memory + 1, 9, 0, NULL, &spectrum));
    REFUSED(ARG, "0 samples", partita_spectrum_create(PARTITA_F32, memory, 0, 0, NULL, &spectrum));
    REFUSED(ARG, "f16", partita_spectrum_create(PARTITA_F16, memory, 9, 0, NULL, &spectrum));
    REFUSED(ARG, "y is NULL", partita_spectrum_convolve(NULL, o.spectrum, o.spectrum, NULL));
    REFUSED(ARG, "x is NULL", partita_spectrum_convolve(memory, NULL, o.spectrum, NULL));
    REFUSED(ARG, "h is NULL", partita_spectrum_correlate(memory, o.spectrum, NULL, NULL));
    REFUSED(ARG, "y is not", partita_spectrum_correlate(memory + 2, o.spectrum, o.spectrum, NULL));
    REFUSED(ARG, "slice", partita_spectrum_convolve(memory, o.spectrum, o.spectrum, &empty));
    REFUSED(ARG, "do not meet",
            partita_spectrum_convolve(memory, o.spectrum, o.short_spectrum, NULL));
    REFUSED(ARG, "plan is NULL", partita_saved_create(NULL, &saved));
    REFUSED(ARG, "ret_saved is NULL", partita_saved_create(o.layer, NULL));
    REFUSED(UNSUPPORTED, "saved", partita_saved_create(o.other, &saved));
}

static void designs(void **state)
{
    double taps[9];
    size_t count;
    struct partita_design_result result;
    struct partita_correction_report report;
    const struct partita_correction nothing = {0};
    const struct partita_design empty = {0}, good = {.cutoff = {0.1}, .width = 0.1};
    (void)state;
    REFUSED(ARG, "design is NULL", partita_design_taps_count_sized(NULL, 0, &count));
    REFUSED(ARG, "ret_count is NULL", partita_design_taps_count(&good, NULL));
    REFUSED(ARG, "design.cutoff[0]", partita_design_taps_count(&empty, &count));
    REFUSED(ARG, "taps is NULL", partita_design_taps(&good, NULL, 9));
    REFUSED(ARG, "n = 0", partita_design_taps(&good, taps, 0));
    REFUSED(ARG, "taps is NULL", partita_design_measure(&good, NULL, 9, &result));
    REFUSED(ARG, "ret_result is NULL",
            partita_design_measure_sized(&good, sizeof good, taps, 9, NULL, 0));
    REFUSED(ARG, "n = 0", partita_design_measure(&good, taps, 0, &result));
    const struct partita_equalizer flat = {.rate = 48000};
    const struct partita_crossover one = {.bands = 1};
    struct partita_equalizer_result achieved;
    REFUSED(ARG, "biquads is NULL", partita_equalizer_biquads(&flat, NULL, &count));
    REFUSED(ARG, "n = 0", partita_equalizer_taps(&flat, taps, 0, &achieved));
    REFUSED(ARG, "crossover.bands = 1", partita_crossover_taps(&one, taps, 9, &achieved));
    REFUSED(ARG, "correction is NULL", partita_correction_average_sized(NULL, 0, taps, taps));
    REFUSED(ARG, "taps is NULL", partita_correction_taps(&nothing, taps, NULL, &report));
    REFUSED(ARG, "recording is NULL", partita_deconvolve(taps, NULL, 9, taps, 9, NULL));
    REFUSED(ARG, "m = 0", partita_deconvolve(taps, taps, 9, taps, 0, NULL));
    REFUSED(UNSUPPORTED, "n + m", partita_deconvolve(taps, taps, (size_t)1 << 40, taps, 9, NULL));
}

static void wisdoms(void **state)
{
    struct partita_wisdom *wisdom;
    (void)state;
    assert_ok(partita_wisdom_create(&wisdom));
    REFUSED(ARG, "ret_wisdom is NULL", partita_wisdom_create(NULL));
    REFUSED(ARG, "wisdom is NULL", partita_wisdom_calibrate(NULL));
    REFUSED(ARG, "wisdom is NULL", partita_wisdom_load(NULL, "x"));
    REFUSED(ARG, "path is NULL", partita_wisdom_load(wisdom, NULL));
    REFUSED(IO, "/no/such/file", partita_wisdom_load(wisdom, "/no/such/file"));
    REFUSED(STATE, "/proc/self/status", partita_wisdom_load(wisdom, "/proc/self/status"));
    REFUSED(ARG, "path is NULL", partita_wisdom_save(wisdom, NULL));
    REFUSED(IO, "/no/such/file", partita_wisdom_save(wisdom, "/no/such/file"));
    partita_wisdom_destroy(wisdom);
}

static void sequences(void **state)
{
    const struct partita_causal none = {0};
    (void)state;
    REFUSED(ARG, "causal is NULL", partita_causal_forward(NULL));
    REFUSED(ARG, "causal is NULL", partita_causal_backward(NULL));
    REFUSED(ARG, "batch = 0", partita_causal_forward(&none));

    const struct partita_decode_options options = {.sequences = 1, .channels = 1, .n_taps = 1};
    const float *taps = (const float *)memory;
    struct partita_decode *decode = NULL;
    size_t slot = 0, bytes;
    REFUSED(ARG, "options is NULL", partita_decode_memory(NULL, &bytes));
    REFUSED(ARG, "taps is NULL", partita_decode_create(&options, NULL, &decode));
    assert_ok(partita_decode_create(&options, taps, &decode));
    REFUSED(ARG, "decode is NULL", partita_decode_join(NULL, &slot));
    REFUSED(ARG, "slot 0", partita_decode_drop(decode, slot));
    REFUSED(ARG, "slot 0", partita_decode_clone(decode, slot, &slot));
    REFUSED(ARG, "slot 0", partita_decode_rewind(decode, slot, 1));
    REFUSED(ARG, "slot 0", partita_decode_prefill(decode, slot, memory, memory + 64, 1));
    REFUSED(ARG, "frames = 9", partita_decode_step(decode, &slot, 1, 9, memory, memory + 64));
    partita_decode_destroy(decode);
}

static void channelizers(void **state)
{
    const struct partita_channelizer_options none = {.n_taps = 4},
                                             one = {.channels = 1, .n_taps = 4};
    const struct partita_channel wide = {.taps = memory, .n_taps = 1 << 20},
                                 narrow = {.taps = memory, .n_taps = 4};
    struct partita_channelizer *channelizer;
    struct partita_channel_filter *filter;
    size_t channel;
    (void)state;
    REFUSED(ARG, "options is NULL", partita_channelizer_create_sized(NULL, 0, &channelizer));
    REFUSED(ARG, "ret_channelizer is NULL", partita_channelizer_create(&none, NULL));
    REFUSED(ARG, "channels = 0", partita_channelizer_create(&none, &channelizer));
    assert_ok(partita_channelizer_create(&one, &channelizer));
    REFUSED(ARG, "channelizer is NULL", partita_channel_filter_create(NULL, &narrow, &filter));
    REFUSED(ARG, "channel.n_taps", partita_channel_filter_create(channelizer, &wide, &filter));
    assert_ok(partita_channel_filter_create(channelizer, &narrow, &filter));
    REFUSED(ARG, "filter is NULL", partita_channelizer_open(channelizer, NULL, 0, &channel));
    REFUSED(ARG, "centre = 2", partita_channelizer_open(channelizer, filter, 2, &channel));
    REFUSED(STATE, "is not open", partita_channelizer_change(channelizer, 0, filter, 0, 0));
    REFUSED_SILENTLY(ARG, partita_channelizer_close(NULL, 0));
    REFUSED_SILENTLY(STATE, partita_channelizer_close(channelizer, 0));
    REFUSED_SILENTLY(ARG, partita_channelizer_reset(NULL, 0));
    partita_channel_filter_destroy(filter);
    partita_channelizer_destroy(channelizer);
}

static void pairs_of_signals(void **state)
{
    const struct partita_pairs_options none = {.max_lag = 4}, two = {.signals = 2};
    struct partita_pairs *pairs;
    (void)state;
    REFUSED(ARG, "ret_pairs is NULL", partita_pairs_create(&two, NULL));
    REFUSED(ARG, "signals = 0", partita_pairs_create(&none, &pairs));
    assert_ok(partita_pairs_create(&two, &pairs));
    REFUSED(ARG, "x is NULL", partita_pairs_add(pairs, NULL, 8, 0, 8, 0));
    REFUSED(ARG, "pairs is NULL", partita_pairs_read(NULL, memory, 1));
    REFUSED(ARG, "y is not aligned to 4", partita_pairs_read(pairs, memory + 1, 1));
    partita_pairs_destroy(pairs);
}

static void no_match(void *context, const struct partita_match *match)
{
    (void)context;
    (void)match;
}

static void templates(void **state)
{
    const float silent[4] = {0}, sound[4] = {1, -1, 2, 0};
    const float *samples[] = {sound}, *zeros[] = {silent}, *x[] = {sound}, *none[] = {NULL};
    const size_t length = 4, empty = 0, far = (size_t)1 << 30;
    const double infinite = (double)INFINITY;
    const struct partita_match_options good = {.templates = 1,
                                               .samples = samples,
                                               .lengths = &length,
                                               .threshold = 0.5,
                                               .report = no_match};
    struct partita_match_options bad;
    (void)state;
#define REFUSED_WITH(text, field, value)                                                           \
    do {                                                                                           \
        bad = good;                                                                                \
        bad.field = value;                                                                         \
        REFUSED(ARG, text, partita_match_templates(&bad, x, 4));                                   \
    } while (0)
    assert_ok(partita_match_templates(&good, x, 4));
    assert_ok(partita_match_templates(&good, x, 0));
    REFUSED(ARG, "options is NULL", partita_match_templates_sized(NULL, 0, x, 4));
    REFUSED(ARG, "x is NULL", partita_match_templates(&good, NULL, 4));
    REFUSED(ARG, "x not NULL", partita_match_templates(&good, none, 4));
    REFUSED_WITH("one above 0", threshold, 0);
    REFUSED_WITH("threshold = nan", threshold, (double)NAN);
    REFUSED_WITH("mad = -1", mad, -1);
    REFUSED_WITH("threads = -1", threads, -1);
    REFUSED_WITH("distance", distance, far);
    REFUSED_WITH("channels", channels, far);
    REFUSED_WITH("report is NULL", report, NULL);
    REFUSED_WITH("samples is NULL", samples, NULL);
    REFUSED_WITH("lengths is NULL", lengths, NULL);
    REFUSED_WITH("templates[0]", samples, none);
    REFUSED_WITH("templates[0]: length", lengths, &empty);
    REFUSED_WITH("delays", delays, &far);
    REFUSED_WITH("templates[0], channel 0: 0 or not finite", samples, zeros);
    REFUSED_WITH("not finite", weights, &infinite);
#undef REFUSED_WITH
}

static void adaptive_filters(void **state)
{
    const struct partita_adaptive_options none = {.channels = 1}, one = {.channels = 1, .taps = 8};
    struct partita_adaptive *adaptive;
    struct partita_adaptive_stats stats;
    (void)state;
    REFUSED(ARG, "options is NULL", partita_adaptive_create_sized(NULL, 0, &adaptive));
    REFUSED(ARG, "taps = 0", partita_adaptive_create(&none, &adaptive));
    assert_ok(partita_adaptive_create(&one, &adaptive));
    REFUSED(ARG, "adaptive is NULL", partita_adaptive_taps(NULL, 0, memory));
    REFUSED(ARG, "channel = 1", partita_adaptive_taps(adaptive, 1, memory));
    REFUSED_SILENTLY(ARG, partita_adaptive_stats(NULL, &stats));
    REFUSED(ARG, "state is NULL", partita_adaptive_save(adaptive, NULL));
    REFUSED(STATE, "damaged", partita_adaptive_restore(adaptive, memory, 64));
    partita_adaptive_destroy(adaptive);
}

static void corrections(void **state)
{
    const struct partita_correction none = {.frames = 0};
    struct partita_correction_report report;
    double *const taps = (double *)memory;
    (void)state;
    REFUSED(ARG, "responses is NULL", partita_correction_average(&none, NULL, taps));
    REFUSED(ARG, "taps is NULL", partita_correction_taps(&none, taps, NULL, &report));
}

// Whether a call of the function is among those that were made; NAME and NAME_sized are one.
static bool was_tested(const char *name, size_t length)
{
    for (size_t i = 0; i < n_tested; i++)
        if (!strncmp(tested[i], name, length) &&
            (tested[i][length] == '(' || !strncmp(tested[i] + length, "_sized(", 7)))
            return true;
    return false;
}

static void every_function(void **state)
{
    static const char *const headers[] = {"problem",  "plan",        "filter",    "stream",
                                          "bank",     "channelizer", "design",    "sequence",
                                          "decode",   "pairs",       "templates", "equalizer",
                                          "advanced", "partita",     "adaptive",  "correction"};
    static char text[1 << 16];
    size_t functions = 0;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/partita/%s.h", PUBLIC_HEADERS, headers[i]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        static const char begin[] = "PARTITA_API enum partita_status";
        for (const char *at = text; (at = strstr(at, begin)); functions++) {
            at = strstr(at + sizeof begin - 1, "partita_");
            size_t length = strcspn(at, "(");
            if (length > 6 && !strncmp(at + length - 6, "_sized", 6)) length -= 6;
            if (was_tested(at, length)) continue;
            printf("# %.*s is not tested\n", (int)length, at);
            fail();
        }
    }
    assert_true(functions > 35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),        cmocka_unit_test(filters),
        cmocka_unit_test(directions),   cmocka_unit_test(streams),
        cmocka_unit_test(banks),        cmocka_unit_test(one_shots),
        cmocka_unit_test(spectra),      cmocka_unit_test(designs),
        cmocka_unit_test(wisdoms),      cmocka_unit_test(sequences),
        cmocka_unit_test(channelizers), cmocka_unit_test(pairs_of_signals),
        cmocka_unit_test(templates),    cmocka_unit_test(adaptive_filters),
        cmocka_unit_test(corrections),  cmocka_unit_test(every_function),
    };
    char name[] = "/tmp/partita-refusals-XXXXXX";
    captured = mkstemp(name);
    if (captured < 0 || dup2(captured, STDERR_FILENO) < 0) return 1;
    unlink(name);
    setenv("PARTITA_LOG", "stderr", 1);
    open_objects(NULL);
    const int failed = run_all(tests);
    close_objects(NULL);
    return failed;
}
