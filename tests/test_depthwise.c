// SPDX-License-Identifier: MIT
// cpu/depthwise on layers made for it.
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
static void random_layers(void **state)
{
    enum partita_type type = *(const enum partita_type *)*state;
    struct random random = random_start("depthwise");
    for (int i = 0; i < 150; i++) {
        struct partita_problem p = draw(&random, type);
        struct layer layer;
        layer_open(&layer, &p,
                   &(struct partita_options){.engine = "cpu/depthwise", .threads = 2, .directions = LAYER_ALL},
                   &random);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
}
int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    static struct CMUnitTest tests[2];
    for (int i = 0; i < 2; i++)
        tests[i] = named_test(random_layers, &types[i], "random-%s", partita_type_name(types[i]));
    return run_test_list(tests, 2);
}
