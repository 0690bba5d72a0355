// SPDX-License-Identifier: MIT
// Channels that open, change and close; bad arguments; lack of memory.
#include "channel_world.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support/allocators.h"

// A change fades between the outputs that both channels have by themselves; the last of several
// changes counts; an old number is not read.
static void changes_fade(void **state)
{
    enum { FADE = 9 };
    (void)state;
    struct random random = random_start("fade");
    for (int i = 0; i < 8; i++) {
        struct world w = random_world(&random, (enum partita_type)(PARTITA_F32 + i % 4));
        w.options.block = w.options.stride * (64 / w.options.stride + 10);
        open_world(&w);
        const size_t block = w.options.block, bytes = partita_type_size(w.options.signal);
        size_t other, n = 0;
        assert_ok(partita_channelizer_open(w.channelizer, w.filter, -w.centre / 3, &other));
        assert_int_equal(partita_channelizer_process(w.channelizer, w.x, block), block);
        const size_t fade = i % 2 ? FADE : 0;
        assert_ok(partita_channelizer_change(w.channelizer, w.slot, w.filter, 0, fade));
        assert_ok(partita_channelizer_change(w.channelizer, w.slot, w.filter, -w.centre / 3, fade));
        size_t reference;
        assert_ok(partita_channelizer_open(w.channelizer, w.filter, w.centre, &reference));
        for (int pass = 1; pass < 5; pass++) {
            partita_channelizer_process(w.channelizer, (char *)w.x + (size_t)pass * block * bytes,
                                        block);
            const void *y = partita_channelizer_output(w.channelizer, w.slot, &n);
            const void *to = partita_channelizer_output(w.channelizer, other, &n);
            const void *from = partita_channelizer_output(w.channelizer, reference, &n);
            const enum partita_type type = output_type(&w);
            if (pass == 1)
                for (size_t m = 0; m < fade; m++) {
                    const double complex a = reference_sample(type, from, m),
                                         b = reference_sample(type, to, m);
                    const double complex expected =
                        a + (b - a) * ((double)m + 1) / ((double)fade + 1);
                    const double u = type_is_f64(type) ? 0x1p-52 : 0x1p-24;
                    assert_true(cabs(reference_sample(type, y, m) - expected) <=
                                2 * u * (cabs(a) + cabs(b)));
                }
            const size_t done = pass == 1 ? fade * partita_type_size(type) : 0;
            assert_memory_equal((const char *)y + done, (const char *)to + done,
                                n * partita_type_size(type) - done);
            assert_ok(partita_channelizer_change(w.channelizer, w.slot, w.filter, -w.centre / 3,
                                                 fade)); // to itself
        }
        drop_world(&w);
    }
}

static void numbers_are_used_again(void **state)
{
    (void)state;
    struct random random = random_start("numbers");
    struct world w = random_world(&random, PARTITA_CF32);
    w.options.channels = 2;
    w.options.block = w.options.stride * 10;
    open_world(&w);
    size_t second, third, n;
    assert_null(partita_channelizer_output(w.channelizer, w.slot, &n));
    assert_ok(partita_channelizer_open(w.channelizer, w.filter, 0, &second));
    assert_int_equal(partita_channelizer_open(w.channelizer, w.filter, 0, &third),
                     PARTITA_ERR_STATE);
    assert_ok(partita_channelizer_close(w.channelizer, second));
    assert_int_equal(partita_channelizer_close(w.channelizer, second), PARTITA_ERR_STATE);
    assert_int_equal(partita_channelizer_open(w.channelizer, w.filter, 0, &third),
                     PARTITA_ERR_STATE);
    assert_int_equal(partita_channelizer_process(w.channelizer, NULL, w.options.block + 5),
                     w.options.block);
    assert_non_null(partita_channelizer_output(w.channelizer, w.slot, &n));
    assert_null(partita_channelizer_output(w.channelizer, second, &n));
    assert_null(partita_channelizer_output(w.channelizer, 2, &n));
    assert_int_equal(n, 0);
    assert_ok(partita_channelizer_open(w.channelizer, w.filter, 0, &third));
    assert_int_equal(third, second);
    drop_world(&w);
}

// A thread opens, changes and closes channels while another processes.
struct race {
    struct world *w;
    atomic_bool done;
};

static void *steer(void *context)
{
    struct race *race = context;
    struct random random = random_start("steer");
    struct world *w = race->w;
    while (!atomic_load(&race->done)) {
        size_t slot;
        if (partita_channelizer_open(w->channelizer, w->filter, 0.01, &slot)) continue;
        for (size_t k = random_below(&random, 5); k > 0; k--)
            partita_channelizer_change(w->channelizer, slot, w->filter, 0.001 * (double)k,
                                       random_below(&random, 3));
        if (random_below(&random, 2)) partita_channelizer_close(w->channelizer, slot);
        else slot = 0;
        for (size_t k = 1; k < w->options.channels; k++)
            if (random_below(&random, 3) == 0) partita_channelizer_close(w->channelizer, k);
    }
    return NULL;
}

static void other_channels_come_and_go(void **state)
{
    (void)state;
    struct random random = random_start("race");
    struct world w = random_world(&random, PARTITA_CF32);
    w.options.channels = 8;
    w.options.block = w.options.stride * 16;
    w.options.threads = 1;
    open_world(&w);
    const size_t n = MAX_INPUTS / w.options.block * w.options.block;
    const size_t all = n * or_one(w.channel.up) / or_one(w.channel.stride) * 8;
    char *quiet = malloc(all), *busy = malloc(all);
    const size_t outputs = process(&w, w.slot, NULL, quiet, n);
    struct race race = {.w = &w};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, steer, &race), 0);
    for (int round = 0; round < 10; round++) {
        assert_ok(partita_channelizer_reset(w.channelizer, 0));
        assert_int_equal(process(&w, w.slot, &random, busy, n), outputs);
        assert_memory_equal(quiet, busy, outputs * 8);
    }
    atomic_store(&race.done, true);
    pthread_join(thread, NULL);
    free(quiet);
    free(busy);
    drop_world(&w);
}

static void bad_arguments(void **state)
{
    (void)state;
    static const float taps[400] = {1};
    static const struct {
        struct partita_channelizer_options options;
        const char *words;
    } wrong[] = {
        {{.n_taps = 3}, "channels = 0"},
        {{.channels = 1}, "n_taps = 0"},
        {{.channels = 1, .n_taps = 3, .signal = PARTITA_F16}, "signal = "},
        {{.channels = 1, .n_taps = 3, .stride = 7, .block = 20}, "such as 21"},
        {{.channels = 1, .n_taps = 3, .sample_rate = -1}, "sample_rate = -1"},
        {{.channels = 1, .n_taps = 3, .sample_rate = (double)NAN}, "sample_rate = "},
        {{.channels = 1, .n_taps = 3, .threads = -1}, "threads = -1"},
        {{.channels = 1, .n_taps = 3, .stride = (1 << 24) - 1}, "stride = 16777215"},
        {{.channels = 1, .n_taps = 3, .allocator = {.release = meter_release}}, "allocator"},
    };
    static const struct {
        struct partita_channel channel;
        const char *words;
    } wrong_channels[] = {
        {{.n_taps = 3}, "taps is NULL"},
        {{.taps = (const char *)taps + 1, .n_taps = 3}, "taps: must be aligned"},
        {{.taps = taps}, "n_taps = 0"},
        {{.taps = taps, .n_taps = 400}, "options.n_taps = 40, which must be at least 400"},
        {{.taps = taps, .n_taps = 3, .stride = 5}, "multiple of 5"},
        {{.taps = taps, .n_taps = 3, .up = 3, .stride = 15}, "multiple of 5"},
        {{.taps = taps, .n_taps = 3, .taps_type = PARTITA_BF16}, "taps_type"},
        {{.taps = taps, .n_taps = 3, .bandwidth = -1}, "bandwidth = -1"},
        {{.taps = taps, .n_taps = 3, .bandwidth = 1.1}, "up * sample_rate = 1"},
    };
    struct log_lines lines = {0};
    struct partita_channelizer *channelizer = NULL;
    struct partita_channel_filter *filter = NULL;
    size_t slot;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct partita_channelizer_options options = wrong[i].options;
        lines.text[0] = 0;
        options.log = log_into(&lines);
        assert_int_equal(partita_channelizer_create(&options, &channelizer), PARTITA_ERR_ARG);
        if (!strstr(lines.text, wrong[i].words)) fail_msg("%s: %s", wrong[i].words, lines.text);
    }
    const struct partita_channelizer_options options = {
        .channels = 1, .n_taps = 40, .stride = 12, .block = 84, .log = log_into(&lines)};
    assert_ok(partita_channelizer_create(&options, &channelizer));
    assert_true(partita_channelizer_overlap(channelizer) < 399);
    for (size_t i = 0; i < sizeof wrong_channels / sizeof *wrong_channels; i++) {
        lines.text[0] = 0;
        assert_int_equal(
            partita_channel_filter_create(channelizer, &wrong_channels[i].channel, &filter),
            PARTITA_ERR_ARG);
        if (!strstr(lines.text, wrong_channels[i].words))
            fail_msg("%s: %s", wrong_channels[i].words, lines.text);
    }
    const struct partita_channel four = {.taps = taps, .n_taps = 3, .stride = 4},
                                 six = {.taps = taps, .n_taps = 3, .stride = 6};
    struct partita_channel_filter *narrow;
    assert_ok(partita_channel_filter_create(channelizer, &four, &filter));
    assert_ok(partita_channel_filter_create(channelizer, &six, &narrow));
    assert_int_equal(partita_channelizer_open(channelizer, filter, 0.51, &slot), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "centre = 0.51"));
    assert_int_equal(partita_channelizer_open(channelizer, filter, (double)NAN, &slot),
                     PARTITA_ERR_ARG);
    assert_ok(partita_channelizer_open(channelizer, filter, 0.5, &slot));
    assert_int_equal(partita_channelizer_change(channelizer, slot, narrow, 0, 1), PARTITA_ERR_ARG);
    assert_int_equal(partita_channelizer_change(channelizer, slot, filter, 0, 22), PARTITA_ERR_ARG);
    assert_int_equal(partita_channelizer_change(channelizer, 5, filter, 0, 0), PARTITA_ERR_STATE);
    assert_ok(partita_channelizer_change(channelizer, slot, narrow, 0, 0));
    assert_int_equal(partita_channelizer_reset(channelizer, 7), PARTITA_ERR_ARG);
    partita_channel_filter_destroy(filter);
    partita_channel_filter_destroy(narrow);
    partita_channelizer_destroy(channelizer);
    partita_channelizer_destroy(NULL);
    partita_channel_filter_destroy(NULL);
}

// Lack of memory changes nothing and leaks nothing; process allocates nothing.
static void memory_may_lack(void **state)
{
    (void)state;
    struct meter meter = {0};
    static const float taps[20] = {1, 2};
    static float x[4000];
    const struct partita_channelizer_options options = {
        .channels = 2, .n_taps = 20, .stride = 6, .allocator = meter_allocator(&meter)};
    const struct partita_channel channel = {.taps = taps, .n_taps = 20, .stride = 6};
    struct partita_channelizer *channelizer = NULL;
    struct partita_channel_filter *filter = NULL;
    size_t slot = 77, n, live = 0;
#define UNTIL_IT_FITS(call)                                                                        \
    for (size_t k = 1;; k++) {                                                                     \
        meter.fail_at = meter.n_allocated + k;                                                     \
        const enum partita_status status = call;                                                   \
        if (status == PARTITA_OK) break;                                                           \
        assert_int_equal(status, PARTITA_ERR_NOMEM);                                               \
        assert_int_equal(meter.n_live, live);                                                      \
    }                                                                                              \
    live = meter.n_live
    UNTIL_IT_FITS(partita_channelizer_create(&options, &channelizer));
    UNTIL_IT_FITS(partita_channel_filter_create(channelizer, &channel, &filter));
    UNTIL_IT_FITS(partita_channelizer_open(channelizer, filter, 0, &slot));
    meter.fail_at = 0;
    const size_t before = meter.n_allocated;
    for (size_t at = 0; at < 8000; at += n)
        n = partita_channelizer_process(channelizer, at < 4000 ? x : NULL, 1000);
    assert_int_equal(meter.n_allocated, before);
    for (int i = 0; i < 10; i++) {
        assert_ok(partita_channelizer_change(channelizer, slot, filter, 0.1, 0));
        if (i % 3 == 0) do
                n = partita_channelizer_process(channelizer, NULL, 1000);
            while (!partita_channelizer_output(channelizer, slot, &n));
    }
    assert_true(meter.n_live <= live + 2); // at most three are kept
    partita_channel_filter_destroy(filter);
    partita_channelizer_destroy(channelizer);
    assert_int_equal(meter.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_fade),
        cmocka_unit_test(numbers_are_used_again),
        cmocka_unit_test(other_channels_come_and_go),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(memory_may_lack),
    };
    return run_all(tests);
}
