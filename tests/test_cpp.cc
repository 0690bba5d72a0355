// SPDX-License-Identifier: MIT
// The header for C++: values, lifetimes, errors. Prints TAP.
#include <partita/partita.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>

static int count, failed;

static void report(bool good, const char *name)
{
    count++;
    failed += !good;
    std::printf("%s %d - %s\n", good ? "ok" : "not ok", count, name);
}

// Whether the call throws an error whose text holds these words.
static bool throws(const char *words, const std::function<void()> &call)
{
    try {
        call();
    } catch (const partita::error &e) {
        return e.status() != PARTITA_OK && std::strstr(e.what(), words);
    }
    return false;
}

static partita_problem echo_problem()
{
    partita_problem problem = {};
    problem.kernel[0] = 4;
    problem.size[0] = PARTITA_UNBOUNDED;
    problem.block = 16;
    return problem;
}

static void streams()
{
    std::array<float, 16> x = {1}, y = {};
    float *in = x.data(), *out = y.data();
    std::optional<partita::stream> stream;
    {
        // The stream keeps filter and plan.
        const partita::plan plan(echo_problem());
        stream.emplace(partita::filter(plan, std::vector<float>{1, 0, 0, 0.5f}));
        stream->process(&out, &in, 8);
        const partita::filter next(plan, std::array<float, 4>{0, 2, 0, 0});
        stream->swap(next, 0);
    }
    report(y[0] == 1 && y[3] == 0.5f && y[4] == 0, "a stream filters");
    x = {};
    while (stream->swapping()) stream->process(&out, &in, 16);
    stream->reset();
    x[0] = 1;
    stream->process(&out, &in, 4);
    stream->process(&out, nullptr, 12);
    partita::stream moved = std::move(*stream);
    report(y[0] == 0 && moved.tail() == 3 + moved.latency(), "it swaps, takes silence and moves");
}

// What is replaced is released in order: streams before their filters, filters before their plan.
static void assignments()
{
    const std::vector<float> taps{1, 2, 3, 4};
    partita::filter filter(partita::plan(echo_problem()), taps);
    filter = partita::filter(partita::plan(echo_problem()), taps);
    const partita::filter copy = filter;
    partita::stream stream(copy);
    stream = partita::stream(partita::filter(partita::plan(echo_problem()), taps));
    float x[4] = {1}, y[4] = {}, *in = x, *out = y;
    stream.process(&out, &in, 4);
    report(y[3] == 4 && copy.plan().taps_count() == 4, "filters and streams are assigned");
}

// A text belongs to its failure.
static void texts()
{
    const partita::plan plan(echo_problem());
    const partita_taps wrong = {};
    const bool first = throws("taps", [&] { partita::filter(plan, wrong); });
    report(first && throws("y is NULL",
                           [&] {
                               plan.forward(partita::filter(plan, std::vector<float>(4)),
                                            std::vector<float>(), std::vector<float>());
                           }),
           "the text of an error is not that of an earlier one");
    partita_problem image = {};
    image.signal = PARTITA_CF32;
    image.kernel[0] = image.kernel[1] = 3;
    image.size[0] = image.size[1] = 10;
    report(throws("complex problems have one axis", [&] { partita::plan no(image); }),
           "the text of an error is the reason, not what the last engine says");
}

static void layers()
{
    partita_problem problem = {};
    problem.op = PARTITA_CORRELATE;
    problem.in_channels = problem.out_channels = 2;
    problem.kernel[0] = problem.kernel[1] = 3;
    problem.size[0] = problem.size[1] = 8;
    const partita::plan plan(problem);
    std::vector<float> w(36, 1), x(2 * 64, 1), y(2 * 36), gx(x.size()), gw(w.size());
    const partita::filter filter(plan, w);
    plan.forward(filter, y, x);
    plan.backward_data(filter, gx, y);
    plan.backward_weight(gw, x, y);
    report(plan.output_count() == 72 && y[0] == 18 && gw[0] == 36 * 18 && gx[0] == 36,
           "a layer runs forward and backward");
    report(
        throws("y: 71 samples", [&] { y.pop_back(), plan.forward(filter, y, x); }) &&
            throws("samples are f64", [&] { plan.forward(filter, y, std::vector<double>(128)); }) &&
            throws("taps: 3 samples", [&] { partita::filter(plan, std::vector<float>(3)); }),
        "sizes and types of arrays are checked");
}

static void updates()
{
    partita_problem problem = {};
    problem.size[0] = 6;
    problem.kernel[0] = 2;
    const partita::plan plan(problem);
    const std::vector<float> first{1, 2}, second{3, 4}, bias{10}, other{20};
    std::vector<float> x(6, 1), y(5);
    partita_taps taps = {};
    taps.dense = first.data();
    taps.dense_count = first.size();
    taps.bias = bias.data();
    partita::filter filter(plan, taps);
    filter.update(second);
    plan.forward(filter, y, x);
    const bool kept = y[0] == 17;
    const partita_call call = {};
    filter.update(first, other, call);
    plan.forward(filter, y, x);
    report(kept && y[0] == 23, "a filter takes other taps and another bias");
    filter.update(second, call);
    report(
        throws("bias: 2 samples", [&] { filter.update(second, first); }) &&
            throws("taps: 1 samples", [&] { filter.update(bias); }) &&
            throws("created without", [&] { partita::filter(plan, first).update(second, bias); }),
        "updates are checked");
}

static void errors()
{
    partita_problem problem = echo_problem();
    problem.stride[1] = 7;
    report(throws("stride[1]", [&] { partita::plan{problem}; }), "errors name the field");
    report(throws("", [] { partita::convolve<float>({}, {1}); }), "an empty signal is an error");
}

static void calls()
{
    using complex = std::complex<double>;
    const auto y = partita::convolve<float>({1, 2, 3}, {1, 1});
    const auto z = partita::correlate<complex>({{0, 1}}, {{0, 1}});
    report(y == std::vector<float>{1, 3, 5, 3} && z == std::vector<complex>{1}, "one-shot calls");
    const partita::plan plan(echo_problem());
    report(plan.explain().find(plan.engine()) != std::string::npos, "the text of a plan");
}

int main()
{
    streams();
    assignments();
    texts();
    layers();
    updates();
    errors();
    calls();
    std::printf("1..%d\n", count);
    return failed > 0;
}
