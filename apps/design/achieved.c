// SPDX-License-Identifier: MIT
#include "design.h"

#include <math.h>
#include <stdlib.h>

#include "base/json_values.h"

// Frames per second, or 1 if frequencies are fractions of the rate.
static double rate_of(const struct job *job)
{
    return job->settings.rate > 0 ? job->settings.rate : 1;
}

int achieved_bands(const struct job *job, struct band bands[MAX_BANDS])
{
    const struct partita_design *d = &job->design;
    const double width = job->result.width, half = width / 2, end = rate_of(job) / 2;
    const double *c = d->cutoff;
    const bool passes_0 =
        d->kind != PARTITA_DESIGN_HIGH_PASS && d->kind != PARTITA_DESIGN_BAND_PASS;
    switch (d->kind) {
    case PARTITA_DESIGN_HILBERT:
        bands[0] = (struct band){width, end - width, true};
        return 1;
    case PARTITA_DESIGN_TABLE:
        bands[0] = (struct band){0, end, true};
        return 1;
    case PARTITA_DESIGN_RAISED_COSINE:
    case PARTITA_DESIGN_ROOT_RAISED_COSINE:
        bands[0] = (struct band){0, c[0], true};
        bands[1] = (struct band){c[0] + width, end, false};
        return bands[1].begin < end ? 2 : 1;
    case PARTITA_DESIGN_BAND_PASS:
    case PARTITA_DESIGN_BAND_STOP:
        bands[0] = (struct band){0, c[0] - half, passes_0};
        bands[1] = (struct band){c[0] + half, c[1] - half, !passes_0};
        bands[2] = (struct band){c[1] + half, end, passes_0};
        return 3;
    default:
        bands[0] = (struct band){0, c[0] - half, passes_0};
        bands[1] = (struct band){c[0] + half, end, !passes_0};
        return 2;
    }
}

bool achieved_pulse(const struct job *job, double *ret_period)
{
    const struct partita_design *d = &job->design;
    *ret_period = rate_of(job) / (2 * d->cutoff[0]);
    return d->kind == PARTITA_DESIGN_RAISED_COSINE || d->kind == PARTITA_DESIGN_ROOT_RAISED_COSINE;
}

static bool is_whole(double x)
{
    return fabs(x - round(x)) < 1e-9 * fmax(fabs(x), 1);
}

// The sum of pulse[i] sinc(x - i).
static double value_at(const double *pulse, size_t n, double x)
{
    if (is_whole(x)) return pulse[(size_t)round(x)];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (i % 2 ? -1 : 1) * pulse[i] / (x - (double)i);
    return sum * sin(M_PI * x) / M_PI;
}

bool achieved_find_interference(struct job *job)
{
    const bool pair = job->design.kind == PARTITA_DESIGN_ROOT_RAISED_COSINE;
    const size_t length = pair ? 2 * job->n - 1 : job->n;
    const double middle = (double)(length - 1) / 2;
    double period, power = 0, sum = 0;
    if (!achieved_pulse(job, &period)) return true;
    double *const taps = job->taps, *const made = malloc(length * sizeof *made);
    const double *pulse = pair ? made : taps;
    const bool good = made && (!pair || partita_convolve(PARTITA_F64, made, taps, job->n, taps,
                                                         job->n, NULL, NULL) == PARTITA_OK);
    const double whole = good ? fabs(value_at(pulse, length, middle)) : 1;
    for (double t = period; good && t <= middle; t += period)
        for (int side = -1; side <= 1; side += 2) {
            const double share = value_at(pulse, length, middle + side * t) / whole;
            power += share * share;
            sum += fabs(share);
        }
    job->interference = (struct interference){sqrt(power), sum};
    free(made);
    return good;
}

// "0 to 17500 Hz and 30000 to 50000 Hz"
static void print_bands(const struct job *job, bool pass, FILE *to)
{
    struct band bands[MAX_BANDS];
    const char *between = " from ";
    const char *unit = job->settings.rate > 0 ? " Hz" : " of the rate";
    const int n = achieved_bands(job, bands);
    for (int i = 0; i < n; i++) {
        if (bands[i].pass != pass) continue;
        fprintf(to, "%s%.6g to %.6g%s", between, bands[i].begin, bands[i].end, unit);
        between = " and ";
    }
    fprintf(to, "\n");
}

static void print_design(const struct job *job, FILE *to)
{
    const struct partita_design_result *r = &job->result;
    const bool hilbert = job->design.kind == PARTITA_DESIGN_HILBERT;
    fprintf(to, "ripple       %.4g dB", r->ripple);
    print_bands(job, true, to);
    if (isfinite(r->attenuation)) {
        fprintf(to, "attenuation  %.2f dB%s", r->attenuation,
                hilbert ? " of negative frequencies" : "");
        print_bands(job, hilbert, to);
    }
    double period;
    if (achieved_pulse(job, &period))
        fprintf(
            to,
            "interference %.1f dB (%.3g %%) rms, %.3g %% at worst, of symbols of %.6g frames%s\n",
            20 * log10(job->interference.rms), 100 * job->interference.rms,
            100 * job->interference.worst, period,
            job->design.kind == PARTITA_DESIGN_ROOT_RAISED_COSINE ? " after a pair of this filter"
                                                                  : "");
}

static void print_equalizer(const struct job *job, FILE *to)
{
    const struct partita_equalizer_result *r = &job->equalized;
    const size_t ways = job->crossover.bands;
    const double rounding = job->rounding;
    if (ways > 1) fprintf(to, "ways         %zu, from the lowest one on\n", ways);
    fprintf(to, "deviation    %.3g dB of %s, at %.6g Hz\n", r->deviation,
            ways > 1 ? "the sum of all ways from 0 dB" : "the magnitude from that of the sections",
            r->deviation_frequency);
    fprintf(to, "gain         %.2f dB at %.6g Hz%s\n", fabs(r->gain) < 0.005 ? 0 : r->gain,
            r->gain_frequency,
            r->gain > 0.005 && ways == 1 ? ", by which loud signals clip unless --gain lowers them"
                                         : "");
    if (isfinite(r->tail)) fprintf(to, "tail         %.1f dB below all energy\n", r->tail);
    if (rounding > 0) fprintf(to, "rounding     %.1f dB rms\n", 20 * log10(rounding));
}

bool achieved_print(const struct job *job, FILE *to)
{
    char name[ENCODING_NAME_SIZE];
    fprintf(to, "taps         %zu, stored as %s\n", job->n,
            encoding_short_name(job->info.encoding, name));
    if (job->equalizes) print_equalizer(job, to);
    else print_design(job, to);
    const double delay = job->result.delay;
    fprintf(to, "delay        %.6g frames", delay);
    if (job->settings.rate > 0) fprintf(to, ", %.6g ms", 1000 * delay / rate_of(job));
    fprintf(to, "\n");
    return fflush(to) == 0;
}

const char *achieved_method(const struct partita_design *d)
{
    if (d->method == PARTITA_DESIGN_EQUIRIPPLE) return "equiripple";
    const bool truncated = d->kind == PARTITA_DESIGN_ROOT_RAISED_COSINE && d->attenuation == 0;
    return truncated ? "truncated" : "kaiser";
}

static void add_design(const struct job *job, json_t *j)
{
    const struct partita_design *d = &job->design;
    const struct partita_design_result *r = &job->result;
    json_t *cutoff = json_array();
    for (int i = 0; i < 2; i++)
        if (d->cutoff[i] > 0) json_array_append_new(cutoff, json_finite(d->cutoff[i]));
    json_object_set_new(j, "method", json_text(achieved_method(d)));
    json_object_set_new(j, "minimum_phase", json_boolean(d->minimum_phase));
    json_object_set_new(j, "cutoff", cutoff);
    json_object_set_new(j, "width", json_finite(r->width));
    json_object_set_new(j, "ripple_db", json_finite(r->ripple));
    json_object_set_new(j, "attenuation_db", json_finite(r->attenuation));
    double period;
    const bool pulse = achieved_pulse(job, &period);
    json_object_set_new(j, "interference_rms", json_finite(pulse ? job->interference.rms : NAN));
    json_object_set_new(j, "interference_worst",
                        json_finite(pulse ? job->interference.worst : NAN));
}

static void add_equalizer(const struct job *job, json_t *j)
{
    const struct partita_equalizer_result *r = &job->equalized;
    json_object_set_new(j, "linear_phase", json_boolean(job->settings.linear_phase));
    json_object_set_new(j, "channels", json_integer((json_int_t)job->crossover.bands));
    json_object_set_new(j, "tail_db", json_finite(r->tail));
    json_object_set_new(j, "rounding_db", json_finite(20 * log10(job->rounding)));
    json_object_set_new(j, "deviation_db", json_finite(r->deviation));
    json_object_set_new(j, "deviation_hz", json_finite(r->deviation_frequency));
    json_object_set_new(j, "gain_db", json_finite(r->gain));
    json_object_set_new(j, "gain_hz", json_finite(r->gain_frequency));
}

bool achieved_print_json(const struct job *job, FILE *to)
{
    const double rate = job->settings.rate;
    const bool equalizes = job->equalizes;
    char name[ENCODING_NAME_SIZE];
    json_t *j = json_report(equalizes ? "partita-equalizer/1" : "partita-design/1",
                            command_rows[COMMAND_DESIGN].name);
    json_object_set_new(j, "kind", json_text(job->kind));
    json_object_set_new(j, "out", json_text(job->out));
    json_object_set_new(j, "type", json_text(encoding_short_name(job->info.encoding, name)));
    json_object_set_new(j, "taps", json_integer((json_int_t)job->n));
    json_object_set_new(j, "rate_hz", json_rate(job->settings.rate));
    (equalizes ? add_equalizer : add_design)(job, j);
    json_object_set_new(j, "delay_frames", json_finite(job->result.delay));
    json_object_set_new(j, "delay_seconds", json_finite(rate > 0 ? job->result.delay / rate : NAN));
    return json_print(j, to);
}
