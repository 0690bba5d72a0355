// SPDX-License-Identifier: MIT
// cpu/depthwise on layers made for it.
#include "engine.h" // before <complex.h>, whose `complex` it has as a name
#include "layer_rig.h"
#include <stdio.h>
static struct partita_problem draw(struct random *random, enum partita_type type)
{
    for (;;) {
        struct partita_problem p = {.signal = type,
                                    .taps = type,
                                    .rank = 1 + (int)random_below(random, 3),
                                    .op = (enum partita_op)random_below(random, 2),
                                    .batch = 1 + random_below(random, 5),
                                    .activation = (enum partita_activation)random_below(random, 2)};
        p.groups = p.in_channels = random_below(random, 3) ? 1 + random_below(random, 7) : 1 + random_below(random, 40);
        p.out_channels = p.groups * (random_below(random, 3) ? 1 : 1 + random_below(random, 3));
        for (int a = 0; a < p.rank; a++) {
            size_t longest = p.rank == 1 ? 300 : p.rank == 2 ? 40 : 12;
            p.size[a] = 1 + random_below(random, longest);
            p.kernel[a] = 1 + random_below(random, random_below(random, 3) ? 8 : longest);
            p.stride[a] = random_below(random, 2) ? 1 : 1 + random_below(random, 4);
            p.dilation[a] = random_below(random, 2) ? 1 : 1 + random_below(random, 4);
            p.pad_begin[a] = (ptrdiff_t)random_below(random, 16) - 4;
            p.pad_end[a] = (ptrdiff_t)random_below(random, 16) - 4;
        }
        double products = (double)(p.batch * p.out_channels);
        for (int a = 0; a < p.rank; a++) products *= (double)(reference_outputs(&p, (size_t)a) * p.kernel[a]);
        if (products > 0 && products < 2e6) return p;
    }
}

// Another way for one direction's plan: transforms of an edge, or none (1). False if it cannot be had.
static bool replan(struct partita_plan *plan, size_t transform)
{
    struct host host;
    struct estimate estimate = {0};
    host_default(&host, plan->level);
    const struct request request = {.shape = &plan->shape, .direction = plan->direction, .host = &host,
                                    .transform = transform, .workspace_limit = SIZE_MAX};
    plan->engine->estimate(&request, &estimate);
    if (!estimate.applicable) return false;
    plan->engine->plan_destroy(plan);
    plan->choice = estimate;
    assert_ok(plan->engine->plan_create(plan, &request));
    return true;
}

static bool force(struct layer *layer, size_t transform)
{
    partita_filter_destroy(layer->filter);
    bool all = replan(layer->plan, transform);
    all = all && replan(layer->plan->backward_data, transform) && replan(layer->plan->backward_weight, transform);
    assert_ok(partita_filter_create_biased(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS], &layer->filter));
    return all;
}

static void random_layers(void **state)
{
    enum partita_type type = *(const enum partita_type *)*state;
    struct random random = random_start("depthwise");
    int forced[3] = {0};
    for (int i = 0; i < 150; i++) {
        struct partita_problem p = draw(&random, type);
        struct layer layer;
        layer_open(&layer, &p, &(struct partita_options){.engine = "cpu/depthwise", .threads = 2, .directions = LAYER_ALL}, &random);
        layer_run(&layer);
        layer_check(&layer);
        static const size_t ways[] = {1, 16, 24, 36, 60, 64, 80};
        for (int k = 0; k < 7; k++) {
            if (!force(&layer, ways[k])) continue;
            forced[k > 0]++;
            layer_run(&layer);
            layer_check(&layer);
        }
        layer_close(&layer);
    }
    print_message("# %d %d\n", forced[0], forced[1]);
}
int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    static struct CMUnitTest tests[2];
    for (int i = 0; i < 2; i++)
        tests[i] = named_test(random_layers, &types[i], "random-%s", partita_type_name(types[i]));
    return run_test_list(tests, 2);
}
