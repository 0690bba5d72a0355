// SPDX-License-Identifier: MIT
// Short causal convolution against sums in double, of random shapes, types, orders in memory, and
// kinds of sequences and states; its bits, and the arguments that it refuses.
#include "causal_world.h"

static void check_outputs(const struct world *w, size_t b)
{
    const struct sequence s = sequence_of(w, b);
    for (size_t c = 0; c < w->call.channels; c++)
        for (size_t f = 0; f < s.frames; f++) {
            struct sum sum = {0, 0};
            if (!is_absent(w, &s, f)) sum = sum_of(w, &s, b, c, f);
            if (w->call.silu) {
                sum.value /= 1 + exp(-sum.value);
                sum.error = 1.1 * sum.error + 5 * u * fabs(sum.value);
            }
            check(*at(&w->y, s.batch, c, s.first + f), sum.value, sum.error, w->call.type, "y", c,
                  f);
        }
}

// Final states are copies; of rings only the new frames change. `before`: the states before the
// call.
static void check_states(const struct world *w, size_t b, const double *before)
{
    const struct sequence s = sequence_of(w, b);
    const struct samples *final = w->call.cache_seqlens ? &w->initial : &w->final;
    const size_t length = w->call.state_len;
    if (s.absent) return;
    for (size_t c = 0; c < w->call.channels; c++)
        for (size_t j = 0; j < length; j++) {
            const double got = stored(w->call.type, final->array.data, place(final, s.slot, c, j));
            double expected =
                *sample_of(w, &s, b, c, (ptrdiff_t)(s.frames + j) - (ptrdiff_t)length);
            if (w->call.cache_seqlens) {
                const size_t age = ((size_t)w->seen[b] + s.frames + 300 * length - 1 - j) % length;
                expected = age < s.frames ? *at(&w->x, s.batch, c, s.first + s.frames - 1 - age)
                                          : before[(s.slot * w->call.channels + c) * length + j];
            }
            check(got, expected, 0, PARTITA_F32, "final", c, j);
        }
}

static void outputs_and_states_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < 240; i++) {
        char name[32];
        snprintf(name, sizeof name, "forward %zu", i);
        struct random random = random_start(name);
        struct world w = make_world(&random, i % KINDS, false);
        w.call.log = log_into(&w.lines);
        if (partita_causal_forward(&w.call)) fail_msg("%s: %s", name, w.lines.text);
        read_back(&w.y);
        for (size_t b = 0; b < w.call.batch; b++) {
            check_outputs(&w, b);
            if (w.call.final.data) check_states(&w, b, w.initial.exact);
        }
        drop_world(&w);
    }
}

// The same call with other strides, threads and cuts gives the same bits.
static void bits_do_not_depend_on_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "cuts %zu", i);
        struct random random = random_start(name);
        struct world w = make_world(&random, STATES, false);
        struct partita_causal part = w.call, whole = w.call;
        const size_t n[] = {w.call.batch, w.call.channels, w.call.frames};
        struct samples y = make(&random, w.call.type, n, random_below(&random, 3));
        whole.threads = 3;
        assert_ok(partita_causal_forward(&whole));
        read_back(&w.y);
        part.final = part.initial, part.y = y.array, part.threads = 1; // in place
        for (size_t f = 0; f < n[2]; f += part.frames) {
            const size_t size = partita_type_size(w.call.type), step = random_below(&random, 40);
            part.frames = 1 + step % (n[2] - f);
            part.x.data = (char *)w.x.array.data + f * w.x.array.frame * size;
            part.y.data = (char *)y.array.data + f * y.array.frame * size;
            assert_ok(partita_causal_forward(&part));
        }
        read_back(&y), read_back(&w.initial), read_back(&w.final);
        assert_memory_equal(y.exact, w.y.exact, n[0] * n[1] * n[2] * sizeof *y.exact);
        assert_memory_equal(w.initial.exact, w.final.exact,
                            n[0] * n[1] * w.call.state_len * sizeof *y.exact);
        part = w.call, part.y = part.x, part.initial.data = part.final.data = NULL; // x in place
        whole.initial.data = whole.final.data = NULL;
        assert_ok(partita_causal_forward(&whole));
        assert_ok(partita_causal_forward(&part));
        read_back(&w.x), read_back(&w.y);
        assert_memory_equal(w.x.exact, w.y.exact, n[0] * n[1] * n[2] * sizeof *y.exact);
        drop(&y);
        drop_world(&w);
    }
}

// Of every float from -88 to 88 in steps that visit all exponents: within 5 u of the result, and
// within 6e-37 below; NaN stays.
static void silu_is_accurate(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    const float one = 1;
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    struct random random = random_start("silu");
    struct partita_causal call = {.batch = 1, .channels = 1, .frames = N, .taps = 1, .silu = true};
    call.w = &one;
    call.x = (struct partita_causal_array){x, 0, 0, 1},
    call.y = (struct partita_causal_array){y, 0, 0, 1};
    for (size_t i = 0; i < N; i++) {
        const double unit = (double)random_below(&random, 1 << 24) * 0x1p-24;
        x[i] = (float)(i % 2 ? 176 * unit - 88
                             : ldexp(1 + unit, (int)(i % 200) - 150) * (i % 3 ? 1 : -1));
    }
    x[0] = NAN, x[1] = -INFINITY, x[2] = -100, x[3] = INFINITY, x[4] = -88.02f, x[5] = 3e38f;
    assert_ok(partita_causal_forward(&call));
    assert_true(isnan(y[0]) && isinf(y[3]));
    for (size_t i = 1; i < N; i++) {
        const double z = (double)x[i], exact = z / (1 + exp(-z)),
                     bound = 5 * u * fabs(exact) + 0x1p-149;
        const double expected = z < -700 ? 0 : exact;
        if (i != 3 && !(fabs((double)y[i] - expected) <= (z <= -88 ? 6e-37 : bound)))
            fail_msg("silu(%a) is %a, expected %a", z, (double)y[i], expected);
    }
    free(x), free(y);
}

// A NaN all of whose bits are set is stored as one, in each order: rounded as a number it were -0.
static void bf16_stores_every_nan(void **state)
{
    (void)state;
    enum { CHANNELS = 16, FRAMES = 64, N = CHANNELS * FRAMES };
    const uint32_t bits = 0x7fffffff;
    uint16_t x[N], y[N];
    float w[CHANNELS];
    for (size_t c = 0; c < CHANNELS; c++) memcpy(&w[c], &bits, sizeof bits);
    for (size_t i = 0; i < N; i++) x[i] = 0x3f80;
    for (size_t last = 0; last < 2; last++) {
        struct partita_causal call = {
            .batch = 1, .channels = CHANNELS, .frames = FRAMES, .taps = 1, .w = w};
        call.type = PARTITA_BF16, call.taps_type = PARTITA_F32;
        call.x = (struct partita_causal_array){x, N, last ? 1 : FRAMES, last ? CHANNELS : 1};
        call.y = call.x, call.y.data = y;
        assert_ok(partita_causal_forward(&call));
        for (size_t i = 0; i < N; i++) assert_true((y[i] & 0x7fff) > 0x7f80);
    }
}

struct refused {
    const char *field; // the log names it
    void (*change)(struct partita_causal *call);
    enum partita_status status;
};

static const int32_t twice[] = {1, 1}, outside[] = {0, 2}, below[] = {-2, 0}, falling[] = {0, 5, 4},
                     late[] = {1, 2, 3}, negative[] = {0, -1};
#define CHANGE(name, ...)                                                                          \
    static void name(struct partita_causal *c)                                                     \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
CHANGE(no_batch, c->batch = 0)
CHANGE(no_channels, c->channels = 0)
CHANGE(no_frames, c->frames = 0)
CHANGE(no_taps, c->taps = 0)
CHANGE(many_taps, c->taps = 257)
CHANGE(other_type, c->type = PARTITA_F64)
CHANGE(other_taps, c->taps_type = PARTITA_CF32)
CHANGE(short_state, c->state_len = 2)
CHANGE(few_slots, c->slots = 1)
CHANGE(no_x, c->x.data = NULL)
CHANGE(no_y, c->y.data = NULL)
CHANGE(no_w, c->w = NULL)
CHANGE(odd_x, c->x.data = (char *)c->x.data + 1)
CHANGE(huge_x, c->x.batch = SIZE_MAX / 3)
CHANGE(folded_y, c->y.frame = 0)
CHANGE(folded_state, c->final.channel = 2)
CHANGE(y_on_x, c->y.data = (char *)c->x.data + 4)
CHANGE(y_on_taps, c->y.data = (void *)(uintptr_t)c->w)
CHANGE(state_on_state, c->final.data = (char *)c->initial.data + 4)
CHANGE(slot_twice, c->cache_indices = twice)
CHANGE(slot_outside, c->cache_indices = outside)
CHANGE(slot_negative, c->cache_indices = below)
CHANGE(starts_fall, c->query_start_loc = falling)
CHANGE(starts_late, c->query_start_loc = late)
CHANGE(negative_ring, c->cache_seqlens = negative; c->final = c->initial)
CHANGE(ring_moves, c->cache_seqlens = outside)
CHANGE(numbers_and_states, c->seq_idx = outside)
CHANGE(negative_threads, c->threads = -1)

static const struct refused refused[] = {
    {"batch = 0", no_batch, PARTITA_ERR_ARG},
    {"channels = 0", no_channels, PARTITA_ERR_ARG},
    {"frames = 0", no_frames, PARTITA_ERR_ARG},
    {"taps = 0", no_taps, PARTITA_ERR_ARG},
    {"taps = 257", many_taps, PARTITA_ERR_ARG},
    {"type", other_type, PARTITA_ERR_UNSUPPORTED},
    {"taps_type", other_taps, PARTITA_ERR_UNSUPPORTED},
    {"state_len = 2", short_state, PARTITA_ERR_ARG},
    {"slots = 1", few_slots, PARTITA_ERR_ARG},
    {"x is NULL", no_x, PARTITA_ERR_ARG},
    {"y is NULL", no_y, PARTITA_ERR_ARG},
    {"w is NULL", no_w, PARTITA_ERR_ARG},
    {"x is not aligned", odd_x, PARTITA_ERR_ARG},
    {"x: strides", huge_x, PARTITA_ERR_ARG},
    {"y: strides", folded_y, PARTITA_ERR_ARG},
    {"final: strides", folded_state, PARTITA_ERR_ARG},
    {"x overlaps y", y_on_x, PARTITA_ERR_ARG},
    {"y overlaps w", y_on_taps, PARTITA_ERR_ARG},
    {"initial overlaps final", state_on_state, PARTITA_ERR_ARG},
    {"cache_indices[1] = 1: is given twice", slot_twice, PARTITA_ERR_ARG},
    {"cache_indices[1] = 2", slot_outside, PARTITA_ERR_ARG},
    {"cache_indices[0] = -2", slot_negative, PARTITA_ERR_ARG},
    {"query_start_loc[2] = 4", starts_fall, PARTITA_ERR_ARG},
    {"query_start_loc[0] = 1", starts_late, PARTITA_ERR_ARG},
    {"cache_seqlens[1] = -1", negative_ring, PARTITA_ERR_ARG},
    {"cache_seqlens: initial and final", ring_moves, PARTITA_ERR_ARG},
    {"seq_idx", numbers_and_states, PARTITA_ERR_ARG},
    {"threads = -1", negative_threads, PARTITA_ERR_ARG},
};

static void bad_arguments_are_refused_by_name(void **state)
{
    (void)state;
    enum {
        BATCH = 2,
        CHANNELS = 3,
        FRAMES = 5,
        TAPS = 4,
        N = BATCH * CHANNELS * FRAMES,
        PAST = TAPS - 1
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        float x[N] = {0}, y[N] = {0}, w[64] = {0}, a[64] = {0}, b[64] = {0}, before[N] = {0};
        struct log_lines lines = {0};
        struct partita_causal call = {
            .batch = BATCH, .channels = CHANNELS, .frames = FRAMES, .taps = TAPS};
        call.x = (struct partita_causal_array){x, CHANNELS * FRAMES, FRAMES, 1}, call.y = call.x;
        call.y.data = y, call.w = w, call.log = log_into(&lines);
        call.initial = (struct partita_causal_array){a, CHANNELS * PAST, PAST, 1},
        call.final = call.initial;
        call.final.data = b;
        for (size_t k = 0; k < N; k++) x[k] = 1, y[k] = before[k] = 2;
        refused[i].change(&call);
        assert_int_equal(partita_causal_forward(&call), refused[i].status);
        assert_int_equal(lines.n_lines, 1);
        if (!strstr(lines.text, refused[i].field))
            fail_msg("'%s' does not name %s", lines.text, refused[i].field);
        assert_memory_equal(y, before, sizeof y);
    }
    assert_int_equal(partita_causal_forward(NULL), PARTITA_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_and_states_are_right),
        cmocka_unit_test(bits_do_not_depend_on_cuts),
        cmocka_unit_test(silu_is_accurate),
        cmocka_unit_test(bf16_stores_every_nan),
        cmocka_unit_test(bad_arguments_are_refused_by_name),
    };
    return run_all(tests);
}
