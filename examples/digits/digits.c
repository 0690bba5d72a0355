// SPDX-License-Identifier: MIT
// Trains a small convolutional network on handwritten digits in a few seconds. The library computes
// the four convolutions forward and backward (layer.c); pooling and the loss are plain loops.
//
//     export.py digits.bin                                 (once; needs scikit-learn)
//     digits [--engine NAME] [--threads N] [--epochs N] [--loss FILE] digits.bin
//
// The network, [channels][height][width] of each step:
//     image [1][8][8] - 3x3, ReLU - [16][8][8] - 3x3, ReLU - [32][8][8] - mean of 2x2 - [32][4][4]
//                     - 3x3, ReLU - [64][4][4] - 4x4: every sample to every digit - [10][1][1]
// --engine selects the algorithm of the 3x3 layers (cpu/direct, cpu/winograd, cpu/tiles ...). The
// losses, one line per step in the file of --loss, are the same up to rounding. The last fifth of
// the shuffled images is used for testing only.
#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 8,
    PIXELS = SIDE * SIDE,
    IMAGES = 1797,
    TRAINED = IMAGES * 4 / 5,
    DIGITS = 10,
    BATCH = 32
};
enum { POOLED = BATCH * 32 * PIXELS / 4 }; // samples after the pooling

struct image {
    float pixel[PIXELS];
    int digit;
};

struct network {
    struct layer first, second, third, last;
    float x[BATCH * PIXELS];
    float pooled[POOLED], pooled_gradient[POOLED];
};

struct arguments {
    struct planning planning;
    int epochs;
    const char *images, *loss;
};

static struct image *load(const char *path)
{
    unsigned char record[PIXELS + 1];
    struct image *images = allocate(IMAGES * sizeof *images);
    FILE *file = fopen(path, "rb");
    size_t n = 0;
    if (!file) {
        perror(path);
        exit(1);
    }
    while (n < IMAGES && fread(record, sizeof record, 1, file) == 1 && record[PIXELS] < DIGITS) {
        for (size_t i = 0; i < PIXELS; i++) images[n].pixel[i] = (float)record[i] / 16;
        images[n++].digit = record[PIXELS];
    }
    fclose(file);
    if (n == IMAGES) return images;
    fprintf(stderr, "digits: %s does not hold the %d images that export.py writes\n", path, IMAGES);
    exit(1);
}

static void shuffle(struct image *images, size_t n, uint64_t *random)
{
    for (size_t i = n - 1; i > 0; i--) {
        const size_t k = (size_t)(random_uniform(random) * (float)(i + 1));
        const struct image other = images[k];
        images[k] = images[i];
        images[i] = other;
    }
}

static struct partita_problem convolution(size_t in, size_t out, size_t kernel, size_t size,
                                          bool relu)
{
    const ptrdiff_t pad = relu ? 1 : 0; // 3x3 layers keep the size of the map
    return (struct partita_problem){.op = PARTITA_CORRELATE,
                                    .rank = 2,
                                    .batch = BATCH,
                                    .in_channels = in,
                                    .out_channels = out,
                                    .kernel = {kernel, kernel},
                                    .size = {size, size},
                                    .pad_begin = {pad, pad},
                                    .pad_end = {pad, pad},
                                    .activation = relu ? PARTITA_RELU : PARTITA_LINEAR};
}

static struct network *network_create(const struct planning *planning, uint64_t *random)
{
    const struct planning planner = {.threads = planning->threads};
    const struct partita_problem first = convolution(1, 16, 3, SIDE, true),
                                 second = convolution(16, 32, 3, SIDE, true),
                                 third = convolution(32, 64, 3, SIDE / 2, true),
                                 last = convolution(64, DIGITS, SIDE / 2, SIDE / 2, false);
    struct network *net = allocate(sizeof *net);
    layer_create(&net->first, &first, planning, random);
    layer_create(&net->second, &second, planning, random);
    layer_create(&net->third, &third, planning, random);
    layer_create(&net->last, &last, &planner, random);
    return net;
}

static void network_destroy(struct network *net)
{
    layer_destroy(&net->first);
    layer_destroy(&net->second);
    layer_destroy(&net->third);
    layer_destroy(&net->last);
    free(net);
}

// Prints the engine of every direction. Returns whether the requested engine computes any.
static bool report_engines(const struct network *net, const char *wanted)
{
    const struct layer *layers[] = {&net->first, &net->second, &net->third, &net->last};
    static const enum partita_direction directions[] = {PARTITA_FORWARD, PARTITA_BACKWARD_DATA,
                                                        PARTITA_BACKWARD_WEIGHT};
    bool used = !wanted;
    for (size_t i = 0; i < 4; i++) {
        printf("layer %zu:", i + 1);
        for (size_t k = 0; k < 3; k++) {
            const char *engine = partita_plan_engine(layers[i]->plan, directions[k]);
            printf(" %s", engine);
            used = used || strcmp(engine, wanted) == 0;
        }
        printf("\n");
    }
    return used;
}

// The index of the first of the four samples whose mean is a pooled sample.
static size_t corner(size_t i)
{
    const size_t half = SIDE / 2, plane = i / (half * half), row = i / half % half,
                 column = i % half;
    return plane * PIXELS + 2 * row * SIDE + 2 * column;
}

// Means instead of maxima: rounding would decide which of four equal samples is the largest.
static void pool(struct network *net, const float *y)
{
    for (size_t i = 0; i < POOLED; i++) {
        const float *at = y + corner(i);
        net->pooled[i] = (at[0] + at[1] + at[SIDE] + at[SIDE + 1]) / 4;
    }
}

static void pool_backward(const struct network *net, float *gy)
{
    for (size_t i = 0; i < POOLED; i++) {
        float *at = gy + corner(i);
        at[0] = at[1] = at[SIDE] = at[SIDE + 1] = net->pooled_gradient[i] / 4;
    }
}

// Copies an image to the batch, shifted by some pixels.
static void place(struct network *net, size_t i, const struct image *image, int down, int across)
{
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            const int r = row - down, c = column - across;
            const bool inside = r >= 0 && r < SIDE && c >= 0 && c < SIDE;
            net->x[i * PIXELS + (size_t)(row * SIDE + column)] =
                inside ? image->pixel[r * SIDE + c] : 0;
        }
}

// Computes the scores of the batch in net->x, in net->last.y.
static void forward(struct network *net)
{
    layer_forward(&net->first, net->x);
    layer_forward(&net->second, net->first.y);
    pool(net, net->second.y);
    layer_forward(&net->third, net->pooled);
    layer_forward(&net->last, net->third.y);
}

static void backward(struct network *net)
{
    layer_backward(&net->last, net->third.gy, net->third.y);
    layer_backward(&net->third, net->pooled_gradient, net->pooled);
    pool_backward(net, net->second.gy);
    layer_backward(&net->second, net->first.gy, net->first.y);
    layer_backward(&net->first, NULL, net->x);
}

// Mean cross-entropy of the softmax of the scores, and its gradient with respect to them.
static double loss(struct network *net, const struct image *images)
{
    double sum = 0;
    for (size_t i = 0; i < BATCH; i++) {
        const float *score = net->last.y + i * DIGITS;
        float *gradient = net->last.gy + i * DIGITS, most = score[0], total = 0;
        for (size_t k = 1; k < DIGITS; k++) most = fmaxf(most, score[k]);
        for (size_t k = 0; k < DIGITS; k++) total += expf(score[k] - most);
        for (size_t k = 0; k < DIGITS; k++) gradient[k] = expf(score[k] - most) / total / BATCH;
        gradient[images[i].digit] -= 1.0f / BATCH;
        sum += (double)(logf(total) - (score[images[i].digit] - most));
    }
    return sum / BATCH;
}

// One training step; returns the loss before it. Every image is shifted by up to one pixel in each
// direction, to augment the 1437 images.
static double train(struct network *net, const struct image *images, float rate, uint64_t *random)
{
    const float momentum = 0.9f;
    for (size_t i = 0; i < BATCH; i++) {
        const int down = (int)(3 * random_uniform(random)) - 1,
                  across = (int)(3 * random_uniform(random)) - 1;
        place(net, i, &images[i], down, across);
    }
    forward(net);
    const double before = loss(net, images);
    backward(net);
    layer_step(&net->first, rate, momentum);
    layer_step(&net->second, rate, momentum);
    layer_step(&net->third, rate, momentum);
    layer_step(&net->last, rate, momentum);
    return before;
}

// The percentage of correctly classified images.
static double accuracy(struct network *net, const struct image *images, size_t n)
{
    size_t right = 0;
    for (size_t at = 0; at < n; at += BATCH) {
        const size_t count = n - at < BATCH ? n - at : BATCH;
        for (size_t i = 0; i < count; i++) place(net, i, &images[at + i], 0, 0);
        forward(net); // the last batch is filled with images of the previous one
        for (size_t i = 0; i < count; i++) {
            const float *score = net->last.y + i * DIGITS;
            int best = 0;
            for (int k = 1; k < DIGITS; k++)
                if (score[k] > score[best]) best = k;
            right += best == images[at + i].digit;
        }
    }
    return 100.0 * (double)right / (double)n;
}

// Trains all epochs, each over the training images in a new order. The learning rate decays to zero
// as half a cosine.
static void learn(struct network *net, struct image *images, const struct arguments *arguments,
                  FILE *losses, uint64_t *random)
{
    const int steps = TRAINED / BATCH, all = arguments->epochs * steps;
    if (losses) fprintf(losses, "step,loss\n");
    for (int epoch = 0, step = 0; epoch < arguments->epochs; epoch++) {
        double sum = 0;
        shuffle(images, TRAINED, random);
        for (int i = 0; i < steps; i++, step++) {
            const float rate = 0.025f * (1 + cosf(3.14159265f * (float)step / (float)all));
            const double now = train(net, images + (size_t)i * BATCH, rate, random);
            if (losses) fprintf(losses, "%d,%.9g\n", step + 1, now);
            sum += now;
        }
        printf("epoch %d: loss %.4f\n", epoch + 1, sum / steps);
    }
}

static bool arguments_parse(struct arguments *ret, int argc, char **argv)
{
    // The maps are too small for a second thread.
    *ret = (struct arguments){.epochs = 12, .planning = {.threads = 1}};
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--engine") == 0) ret->planning.engine = value;
        else if (strcmp(name, "--threads") == 0) ret->planning.threads = atoi(value);
        else if (strcmp(name, "--epochs") == 0) ret->epochs = atoi(value);
        else if (strcmp(name, "--loss") == 0) ret->loss = value;
        else return false;
    }
    if (i != argc - 1 || argv[i][0] == '-') return false;
    ret->images = argv[i];
    return ret->epochs > 0 && ret->planning.threads >= 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    if (!arguments_parse(&arguments, argc, argv)) {
        fprintf(stderr,
                "usage: digits [--engine NAME] [--threads N] [--epochs N] [--loss FILE] IMAGES\n");
        return 2;
    }
    uint64_t random = 1;
    struct image *images = load(arguments.images);
    shuffle(images, IMAGES, &random);
    struct network *net = network_create(&arguments.planning, &random);
    const bool used = report_engines(net, arguments.planning.engine);
    FILE *losses = used && arguments.loss ? fopen(arguments.loss, "w") : NULL;
    int status = 1;
    if (!used)
        fprintf(stderr, "digits: %s supports none of the layers\n", arguments.planning.engine);
    else if (arguments.loss && !losses) perror(arguments.loss);
    else {
        learn(net, images, &arguments, losses, &random);
        printf("accuracy %.2f %% of %d images never seen\n",
               accuracy(net, images + TRAINED, IMAGES - TRAINED), IMAGES - TRAINED);
        status = 0;
    }
    if (losses && fclose(losses) != 0) status = 1;
    network_destroy(net);
    free(images);
    return status;
}
