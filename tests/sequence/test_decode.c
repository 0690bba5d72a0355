// SPDX-License-Identifier: MIT
// Decoding: random histories of sequences that are filled, stepped, cloned, rewound, dropped and
// opened anew have the values of direct sums, and the bits of one prefill; bad calls change
// nothing.
#include <stdio.h>

#include "support/allocators.h"
#include "support/test.h"

struct decode_case {
    const char *name;
    struct partita_decode_options options;
    size_t frames, actions; // the longest sequence
};

static const struct decode_case cases[] = {
    {"one tap", {.sequences = 2, .channels = 3, .n_taps = 1}, 70, 40},
    {"taps of a frame", {.sequences = 3, .channels = 17, .n_taps = 32, .rewind = 7}, 150, 60},
    {"direct sums", {.sequences = 3, .channels = 33, .n_taps = 127, .rewind = 200}, 400, 60},
    {"one segment", {.sequences = 3, .channels = 1, .n_taps = 200, .rewind = 40}, 700, 100},
    {"some channels", {.sequences = 4, .channels = 19, .n_taps = 1000, .rewind = 70}, 1500, 150},
    {"a limit", {.sequences = 2, .channels = 16, .n_taps = 9000, .max_frames = 900}, 900, 60},
    {"long blocks", {.sequences = 2, .channels = 2, .n_taps = 6000, .rewind = 300}, 7000, 60},
    {"threads",
     {.sequences = 3, .channels = 100, .n_taps = 300, .rewind = 9, .threads = 3},
     600,
     60},
    {"bf16",
     {.sequences = 3, .channels = 21, .n_taps = 600, .rewind = 20, .signal = PARTITA_BF16},
     900,
     60},
    {"f16",
     {.sequences = 3, .channels = 5, .n_taps = 600, .rewind = 20, .signal = PARTITA_F16},
     900,
     60},
};

// A sequence as its user knows it: x and y [channels][frames].
struct history {
    bool open;
    size_t n, longest;
    char *x, *y;
};

enum { MAX_SEQUENCES = 4 };

struct story {
    const struct decode_case *test;
    struct random random;
    float *taps;
    struct partita_decode *decode;
    size_t channels, bytes; // of a sample
    struct history history[MAX_SEQUENCES];
};

static char *sample_at(const struct story *story, char *samples, size_t channel, size_t frame)
{
    return samples + (channel * story->test->frames + frame) * story->bytes;
}

// Copies n frames between a history and contiguous arrays of a call.
static void copy_frames(const struct story *story, char *history, size_t first, char *call,
                        size_t n, bool to_call)
{
    for (size_t c = 0; c < story->channels; c++) {
        char *a = sample_at(story, history, c, first), *b = call + c * n * story->bytes;
        memcpy(to_call ? b : a, to_call ? a : b, n * story->bytes);
    }
}

static size_t call_bytes(const struct story *story, size_t n)
{
    return story->channels * n * story->bytes;
}

static void append_random(struct story *story, char *x, struct history *history, size_t n)
{
    random_samples(&story->random, story->test->options.signal, x, story->channels * n);
    copy_frames(story, history->x, history->n, x, n, false);
}

static void grow(struct history *history, size_t n)
{
    history->n += n;
    if (history->n > history->longest) history->longest = history->n;
}

static void prefill(struct story *story, size_t slot)
{
    struct history *history = &story->history[slot];
    const size_t room = story->test->frames - history->n;
    size_t n = random_below(&story->random, room + 1);
    if (random_below(&story->random, 4)) n = n < 100 ? n : 100;
    char *x = guarded_alloc(call_bytes(story, n), 4), *y = guarded_alloc(call_bytes(story, n), 4);
    append_random(story, x, history, n);
    assert_ok(partita_decode_prefill(story->decode, slot, y, x, n));
    copy_frames(story, history->y, history->n, y, n, false);
    grow(history, n);
    guarded_free(x);
    guarded_free(y);
}

static void step(struct story *story)
{
    const size_t frames = 1 + random_below(&story->random, PARTITA_DECODE_FRAMES);
    const size_t start = random_below(&story->random, MAX_SEQUENCES);
    size_t slots[MAX_SEQUENCES], n = 0;
    char *x = guarded_alloc(MAX_SEQUENCES * call_bytes(story, frames), 4),
         *y = guarded_alloc(MAX_SEQUENCES * call_bytes(story, frames), 4);
    for (size_t i = 0; i < MAX_SEQUENCES; i++) {
        const size_t slot = (start + i) % MAX_SEQUENCES;
        struct history *history = &story->history[slot];
        if (!history->open || history->n + frames > story->test->frames) continue;
        if (random_below(&story->random, 3) == 0) continue;
        append_random(story, x + n * call_bytes(story, frames), history, frames);
        slots[n++] = slot;
    }
    assert_ok(partita_decode_step(story->decode, slots, n, frames, y, x));
    for (size_t i = 0; i < n; i++) {
        struct history *history = &story->history[slots[i]];
        copy_frames(story, history->y, history->n, y + i * call_bytes(story, frames), frames,
                    false);
        grow(history, frames);
    }
    guarded_free(x);
    guarded_free(y);
}

static void rewind_some(struct story *story, size_t slot)
{
    struct history *history = &story->history[slot];
    const size_t rewind = story->test->options.rewind;
    const size_t first = history->longest > rewind ? history->longest - rewind : 0;
    const size_t kept = history->n - first, n = random_below(&story->random, kept + 1);
    assert_int_equal(partita_decode_rewind(story->decode, slot, kept + 1), PARTITA_ERR_ARG);
    assert_ok(partita_decode_rewind(story->decode, slot, n));
    history->n -= n;
}

static void open_slot(struct story *story, size_t slot, const struct history *copied)
{
    struct history *history = &story->history[slot];
    const size_t bytes = call_bytes(story, story->test->frames);
    assert_true(slot < story->test->options.sequences && !history->open);
    history->open = true;
    history->n = copied ? copied->n : 0;
    history->longest = copied ? copied->longest : 0;
    if (!copied) return;
    memcpy(history->x, copied->x, bytes);
    memcpy(history->y, copied->y, bytes);
}

// The largest error of the outputs: direct sums, transforms, whose errors are relative to parts of
// the outputs, and the rounding of an output of 16 bits.
static double gate(const struct story *story)
{
    const enum partita_type type = story->test->options.signal;
    double unit = 0;
    if (type == PARTITA_BF16) unit = 0x1p-8;
    if (type == PARTITA_F16) unit = 0x1p-11;
    return gate_direct(PARTITA_F32, 128) + gate_transform(PARTITA_F32, 2048) + unit;
}

static void check_values(const struct story *story, const struct history *history, size_t channel)
{
    const struct partita_decode_options *options = &story->test->options;
    const enum partita_type type = options->signal;
    const float *taps = story->taps + channel * options->n_taps;
    double error = 0, norm = 0;
    for (size_t t = 0; t < history->n; t++) {
        double sum = 0;
        for (size_t j = 0; j <= t && j < options->n_taps; j++)
            sum += taps[j] *
                   creal(reference_sample(type, sample_at(story, history->x, channel, t - j), 0));
        const double y = creal(reference_sample(type, sample_at(story, history->y, channel, t), 0));
        error += (y - sum) * (y - sum);
        norm += sum * sum;
    }
    if (!(error <= gate_for_outputs(gate(story), history->n) *
                       gate_for_outputs(gate(story), history->n) * norm))
        fail_msg("channel %zu of %zu frames: error %g", channel, history->n,
                 norm > 0 ? error / norm : error);
}

// A whole prefill in another state, on another number of threads.
static void check_bits(const struct story *story, const struct history *history)
{
    struct partita_decode_options options = story->test->options;
    struct partita_decode *decode = NULL;
    size_t slot = 0;
    char *x = guarded_alloc(call_bytes(story, history->n), 0),
         *y = guarded_alloc(call_bytes(story, history->n), 0);
    options.threads = options.threads ? 1 : 2;
    options.sequences = 1;
    options.rewind = 0;
    assert_ok(partita_decode_create(&options, story->taps, &decode));
    assert_ok(partita_decode_join(decode, &slot));
    copy_frames(story, history->x, 0, x, history->n, true);
    assert_ok(partita_decode_prefill(decode, slot, y, x, history->n));
    copy_frames(story, history->y, 0, x, history->n, true);
    for (size_t i = 0; i < call_bytes(story, history->n); i++)
        if (x[i] != y[i])
            fail_msg("%zu frames: frame %zu of channel %zu differs from one prefill", history->n,
                     i / story->bytes % history->n, i / story->bytes / history->n);
    partita_decode_destroy(decode);
    guarded_free(x);
    guarded_free(y);
}

static void check_history(const struct story *story, const struct history *history)
{
    if (history->n == 0) return;
    check_bits(story, history);
    check_values(story, history, 0);
    check_values(story, history, story->channels - 1);
}

static void act(struct story *story)
{
    const size_t slot = random_below(&story->random, story->test->options.sequences);
    struct history *history = &story->history[slot];
    size_t other = SIZE_MAX;
    if (!history->open && partita_decode_join(story->decode, &other) == PARTITA_OK) {
        open_slot(story, other, NULL);
        return;
    }
    assert_int_equal(partita_decode_position(story->decode, slot), history->n);
    switch (random_below(&story->random, 10)) {
    case 0:
        check_history(story, history);
        assert_ok(partita_decode_drop(story->decode, slot));
        history->open = false;
        break;
    case 1:
        if (partita_decode_clone(story->decode, slot, &other) == PARTITA_OK)
            open_slot(story, other, history);
        break;
    case 2:
        prefill(story, slot);
        break;
    case 3:
        rewind_some(story, slot);
        break;
    default:
        step(story);
    }
}

static void histories_have_the_bits_of_one_prefill(void **state)
{
    const struct decode_case *test = *state;
    struct story story = {.test = test, .random = random_start(test->name)};
    struct decode_case completed = *test;
    if (!completed.options.signal) completed.options.signal = PARTITA_F32;
    story.test = &completed;
    story.channels = test->options.channels;
    story.bytes = partita_type_size(completed.options.signal);
    story.taps = guarded_alloc(story.channels * test->options.n_taps * sizeof(float), 4);
    random_samples(&story.random, PARTITA_F32, story.taps, story.channels * test->options.n_taps);
    for (size_t i = 0; i < MAX_SEQUENCES; i++) {
        story.history[i].x = calloc(1, call_bytes(&story, test->frames));
        story.history[i].y = calloc(1, call_bytes(&story, test->frames));
    }
    assert_ok(partita_decode_create(&completed.options, story.taps, &story.decode));
    for (size_t i = 0; i < test->actions; i++) act(&story);
    for (size_t i = 0; i < MAX_SEQUENCES; i++) {
        if (story.history[i].open) check_history(&story, &story.history[i]);
        free(story.history[i].x);
        free(story.history[i].y);
    }
    partita_decode_destroy(story.decode);
    guarded_free(story.taps);
}

struct refused {
    const char *text; // the log has it
    struct partita_decode_options options;
    enum partita_status status; // 0: PARTITA_ERR_ARG
};

static const struct refused refused[] = {
    {"decode: sequences = 0", {.channels = 1, .n_taps = 1}, 0},
    {"decode: channels = 0", {.sequences = 1, .n_taps = 1}, 0},
    {"decode: n_taps", {.sequences = 1, .channels = 1, .n_taps = (1 << 20) + 1}, 0},
    {"decode: rewind", {.sequences = 1, .channels = 1, .n_taps = 1, .rewind = SIZE_MAX}, 0},
    {"decode: max_frames", {.sequences = 1, .channels = 1, .n_taps = 1, .max_frames = SIZE_MAX}, 0},
    {"decode: threads", {.sequences = 1, .channels = 1, .n_taps = 1, .threads = -1}, 0},
    {"decode: allocator",
     {.sequences = 1, .channels = 1, .n_taps = 1, .allocator = {.allocate = meter_allocate}},
     0},
    {"decode: signal",
     {.sequences = 1, .channels = 1, .n_taps = 1, .signal = PARTITA_F64},
     PARTITA_ERR_UNSUPPORTED},
};

static void options_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct log_lines lines = {0};
        struct partita_decode_options options = refused[i].options;
        struct partita_decode *decode = NULL;
        size_t bytes = 77;
        const enum partita_status status = refused[i].status ? refused[i].status : PARTITA_ERR_ARG;
        options.log = log_into(&lines);
        assert_int_equal(partita_decode_create(&options, (const float[]){1}, &decode), status);
        assert_int_equal(partita_decode_memory(&options, &bytes), status);
        assert_null(decode);
        assert_int_equal(bytes, 77);
        assert_int_equal(lines.n_lines, 2);
        if (!strstr(lines.text, refused[i].text))
            fail_msg("'%s' does not name %s", lines.text, refused[i].text);
    }
}

enum { BAD_CHANNELS = 4, BAD_TAPS = 300 };

// A bad call has one line that names the argument.
static void is_refused(struct log_lines *lines, enum partita_status status,
                       enum partita_status expected, const char *text)
{
    assert_int_equal(status, expected);
    assert_int_equal(lines->n_lines, 1);
    if (!strstr(lines->text, text)) fail_msg("'%s' does not have '%s'", lines->text, text);
    *lines = (struct log_lines){0};
}

static void bad_calls_change_nothing(void **state)
{
    (void)state;
    struct log_lines lines = {0};
    const struct partita_decode_options options = {.sequences = 2,
                                                   .channels = BAD_CHANNELS,
                                                   .n_taps = BAD_TAPS,
                                                   .max_frames = 500,
                                                   .rewind = 3,
                                                   .log = log_into(&lines)};
    static float taps[BAD_CHANNELS * BAD_TAPS], x[BAD_CHANNELS * 501], y[BAD_CHANNELS * 501],
        expected[BAD_CHANNELS * 500];
    struct random random = random_start("bad calls");
    struct partita_decode *decode = NULL;
    size_t slot = 9, whole = 9, third = 9;
    random_samples(&random, PARTITA_F32, taps, BAD_CHANNELS * BAD_TAPS);
    random_samples(&random, PARTITA_F32, x, BAD_CHANNELS * 501);
    assert_ok(partita_decode_create(&options, taps, &decode));
    assert_ok(partita_decode_join(decode, &whole));
    assert_ok(partita_decode_prefill(decode, whole, expected, x, 500));
    assert_ok(partita_decode_join(decode, &slot));

    is_refused(&lines, partita_decode_join(decode, &third), PARTITA_ERR_STATE, "all 2 slots");
    is_refused(&lines, partita_decode_clone(decode, slot, &third), PARTITA_ERR_STATE,
               "all 2 slots");
    is_refused(&lines, partita_decode_drop(decode, 2), PARTITA_ERR_ARG, "slot 2");
    is_refused(&lines, partita_decode_prefill(decode, slot, y, x, 501), PARTITA_ERR_ARG,
               "max_frames");
    is_refused(&lines, partita_decode_prefill(decode, slot, x, x, 5), PARTITA_ERR_ARG, "overlaps");
    is_refused(&lines, partita_decode_prefill(decode, 5, y, x, 5), PARTITA_ERR_ARG, "slot 5");
    is_refused(&lines, partita_decode_prefill(decode, slot, y, (char *)x + 1, 5), PARTITA_ERR_ARG,
               "aligned");
    is_refused(&lines, partita_decode_prefill(decode, slot, NULL, x, 5), PARTITA_ERR_ARG,
               "y is NULL");
    is_refused(&lines, partita_decode_step(decode, &slot, 1, 0, y, x), PARTITA_ERR_ARG,
               "frames = 0");
    is_refused(&lines, partita_decode_step(decode, &slot, 1, 9, y, x), PARTITA_ERR_ARG,
               "frames = 9");
    is_refused(&lines, partita_decode_step(decode, (size_t[]){slot, slot}, 2, 1, y, x),
               PARTITA_ERR_ARG, "twice");
    is_refused(&lines, partita_decode_step(decode, (size_t[]){slot, whole}, 2, 1, y, x),
               PARTITA_ERR_ARG, "max_frames");
    is_refused(&lines, partita_decode_step(decode, (size_t[]){slot, 7}, 2, 1, y, x),
               PARTITA_ERR_ARG, "slot 7");
    is_refused(&lines, partita_decode_rewind(decode, slot, 1), PARTITA_ERR_ARG, "n = 1");
    is_refused(&lines, partita_decode_rewind(decode, whole, 4), PARTITA_ERR_ARG, "rewind = 3");

    assert_int_equal(partita_decode_position(decode, slot), 0);
    assert_int_equal(partita_decode_position(decode, whole), 500);
    assert_ok(partita_decode_prefill(decode, slot, y, x, 500));
    assert_memory_equal(y, expected, sizeof expected);
    partita_decode_destroy(decode);
}

// What is stated is what is taken, and after that nothing; each allocation may fail.
static void memory_is_stated_and_taken_once(void **state)
{
    (void)state;
    enum { TAPS = 100, CHANNELS = 3 };
    static float taps[CHANNELS * 1000], x[CHANNELS * 8], y[CHANNELS * 8];
    struct meter meter = {0};
    struct partita_decode_options options = {
        .sequences = 2, .channels = CHANNELS, .n_taps = TAPS, .threads = 1};
    struct partita_decode *decode = NULL;
    size_t bytes = 0, slot = 0, allocated = 0;
    options.allocator = meter_allocator(&meter);
    assert_ok(partita_decode_memory(&options, &bytes));
    assert_ok(partita_decode_create(&options, taps, &decode));
    assert_int_equal(meter.bytes_live, bytes); // there are no transforms
    partita_decode_destroy(decode);
    options.n_taps = 1000;
    for (size_t fail = 1;; fail++) {
        meter = (struct meter){.fail_at = fail};
        const enum partita_status status = partita_decode_create(&options, taps, &decode);
        if (status == PARTITA_OK) break;
        assert_int_equal(status, PARTITA_ERR_NOMEM);
        assert_int_equal(meter.n_live, 0);
    }
    allocated = meter.n_allocated;
    assert_ok(partita_decode_join(decode, &slot));
    assert_ok(partita_decode_prefill(decode, slot, y, x, 8));
    assert_ok(partita_decode_step(decode, &slot, 1, 8, y, x));
    assert_int_equal(meter.n_allocated, allocated);
    partita_decode_destroy(decode);
    partita_decode_destroy(NULL);
    assert_int_equal(meter.n_live, 0);
}

int main(void)
{
    enum { N_CASES = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[N_CASES + 3];
    for (size_t i = 0; i < N_CASES; i++)
        tests[i] =
            named_test(histories_have_the_bits_of_one_prefill, &cases[i], "%s", cases[i].name);
    tests[N_CASES] = (struct CMUnitTest)cmocka_unit_test(options_are_refused_by_name);
    tests[N_CASES + 1] = (struct CMUnitTest)cmocka_unit_test(bad_calls_change_nothing);
    tests[N_CASES + 2] = (struct CMUnitTest)cmocka_unit_test(memory_is_stated_and_taken_once);
    return run_all(tests);
}
