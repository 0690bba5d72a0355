// SPDX-License-Identifier: MIT
// The weighted sums of spectra, for every instruction set of this machine, against sums in twice
// the precision; lines between those of the sums do not change, and a line has the same bits
// wherever it is summed.
#include "cpu/partitioned/morph_loops.h"
#include "support/kernel_check.h"

enum { LINES = 5, PITCH = 3 };

struct subject {
    enum cpu_isa isa;
    bool f64;
};

struct data {
    char *x[MORPH_TERMS], *y, *change;
    struct morph_operands operands;
};

static char *lines_make(struct random *random, bool f64)
{
    const size_t bytes = (size_t)LINES * PITCH * SPECTRUM_LINE_BYTES;
    char *lines = guarded_alloc(bytes, 0);
    fill_random(random, f64, lines, bytes / scalar_size(f64));
    return lines;
}

static struct data data_make(struct random *random, bool f64, size_t n_terms)
{
    struct data d = {.y = lines_make(random, f64), .change = lines_make(random, f64)};
    d.operands = (struct morph_operands){
        .y = d.y, .change = d.change, .y_pitch = PITCH, .change_pitch = 1, .n_terms = n_terms};
    for (size_t k = 0; k < n_terms; k++) {
        d.x[k] = lines_make(random, f64);
        d.operands.term[k] = (struct morph_term){d.x[k], k % 2 ? PITCH : 1,
                                                 (double)random_below(random, 2001) / 1000 - 1};
    }
    return d;
}

static void data_free(struct data *d)
{
    for (size_t k = 0; k < MORPH_TERMS; k++) guarded_free(d->x[k]);
    guarded_free(d->y);
    guarded_free(d->change);
}

// The weight is rounded to f32; so is each product with its addition, and the difference.
static void sums_of_all_terms(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->f64 ? "f64" : "f32");
    const size_t reals = SPECTRUM_LINE_BYTES / scalar_size(s->f64);
    for (size_t n = 0; n <= MORPH_TERMS; n++) {
        struct data d = data_make(&random, s->f64, n);
        static char before[LINES * PITCH * SPECTRUM_LINE_BYTES];
        memcpy(before, d.y, sizeof before);
        morph_loops_of(s->isa, s->f64)->sum(&d.operands, LINES);
        for (size_t i = 0; i < LINES * PITCH * reals; i++) {
            const size_t line = i / reals, lane = i % reals;
            const double old = scalar_get(s->f64, before, i), y = scalar_get(s->f64, d.y, i);
            if (line % PITCH) {
                assert_true(y == old);
                continue;
            }
            struct sum sum = {0};
            for (size_t k = 0; k < n; k++) {
                const struct morph_term *term = &d.operands.term[k];
                const double weight = s->f64 ? term->weight : (double)(float)term->weight;
                const size_t at = line / PITCH * term->pitch * reals + lane;
                sum_product(&sum, weight, scalar_get(s->f64, term->x, at));
            }
            if (!agrees(&sum, s->f64, y, n)) fail_msg("%zu terms: value %zu", n, i);
            const double change = y - old;
            assert_same(s->f64, d.change, line / PITCH * reals + lane, change);
        }
        data_free(&d);
    }
}

static void a_line_alone_has_the_same_bits(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->f64 ? "f64" : "f32");
    struct data d = data_make(&random, s->f64, 3);
    static char before[LINES * PITCH * SPECTRUM_LINE_BYTES];
    char whole[sizeof before], changes[LINES * SPECTRUM_LINE_BYTES];
    memcpy(before, d.y, sizeof before);
    morph_loops_of(s->isa, s->f64)->sum(&d.operands, LINES);
    memcpy(whole, d.y, sizeof whole);
    memcpy(changes, d.change, sizeof changes);
    memcpy(d.y, before, sizeof before);
    for (size_t line = LINES; line-- > 0;) {
        struct morph_operands one = d.operands;
        one.y = d.y + line * PITCH * SPECTRUM_LINE_BYTES;
        one.change = d.change + line * SPECTRUM_LINE_BYTES;
        for (size_t k = 0; k < one.n_terms; k++)
            one.term[k].x = d.x[k] + line * one.term[k].pitch * SPECTRUM_LINE_BYTES;
        morph_loops_of(s->isa, s->f64)->sum(&one, 1);
    }
    assert_memory_equal(d.y, whole, sizeof whole);
    assert_memory_equal(d.change, changes, sizeof changes);
    data_free(&d);
}

int main(void)
{
    static struct subject subjects[2 * CPU_ISAS];
    static struct CMUnitTest tests[2 * 2 * CPU_ISAS];
    unsetenv("PARTITA_CPU"); // all instruction sets are tested here
    size_t n = 0;
    struct subject *s = subjects;
    for (enum cpu_isa isa = CPU_C; isa <= cpu_detect(); isa++)
        for (int f64 = 0; f64 < 2; f64++, s++) {
            *s = (struct subject){isa, f64};
            const char *name = cpu_isa_name(isa);
            tests[n++] = named_test(sums_of_all_terms, s, "sums/%s-%d", name, f64 ? 64 : 32);
            tests[n++] = named_test(a_line_alone_has_the_same_bits, s, "line-alone/%s-%d", name,
                                    f64 ? 64 : 32);
        }
    return run_test_list(tests, n);
}
