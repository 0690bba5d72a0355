// SPDX-License-Identifier: MIT
#include "usage.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/engine_name.h"
#include "cli/interrupt.h"
#include "cli/range.h"
#include "correlate/search.h"
#include "output.h"
#include "route/route.h"
#include "shard.h"

bool is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

bool usage_open_signal(struct audio_reader **ret_reader, const struct settings *s,
                       struct fault *fault)
{
    struct stat st;
    struct encoding raw;
    const bool endless = // perhaps; a redirected file is not
        is_standard(s->operands[1]) && (fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode));
    const struct audio_request request = {
        .path = s->operands[1],
        .raw = s->format && encoding_parse(s->format, &raw) ? &raw : NULL,
        .channels = (size_t)s->channels,
        .rate = s->rate,
        .max_channels = options_max_channels(s),
        .wake_fd = endless ? interrupt_as_end_of_input() : -1,
    };
    if (!audio_open(ret_reader, &request, fault)) return false;
    if (audio_reader_info(*ret_reader)->outputs)
        return fault_set(fault, "%s: array of 3 dimensions; a signal has 1 or 2, only a filter 3",
                         operand_name(s, 1));
    return audio_pair_channels(*ret_reader, s->iq, fault);
}

// A sample type can be given for raw samples only, not for a file with a header.
static bool check_format(const char *option, const char *type, const char *path,
                         struct fault *fault)
{
    bool known;
    return !type || is_standard(path) || container_of_name(path, &known) == CONTAINER_RAW ||
           fault_set(fault, "%s %s: is for raw samples, but %s is a file with a header", option,
                     type, path);
}

static bool check_options(const struct settings *s, struct fault *fault)
{
    struct encoding named;
    int n_standard = is_standard(s->operands[1]);
    for (int i = 0; i < s->n_irs; i++) n_standard += is_standard(s->files[i]);
    if (n_standard > 1)
        return fault_set(fault, "both %s and IN are standard input",
                         s->command == COMMAND_CONVOLVE ? "IR" : "TEMPLATE");
    if (s->n_irs > MAX_WORDS)
        return fault_set(fault, "%d file names for IR, at most %d", s->n_irs, MAX_WORDS);
    if (s->quiet && s->verbose)
        return fault_set(fault, "--quiet and --verbose contradict each other");
    uint64_t k, n;
    if (s->range && !shard_parse(s->range, &k, &n, fault)) return false;
    if (s->shared && n_standard)
        return fault_set(fault, "mpirun: all processes read IR and IN, and only one could read "
                                "standard input; use a file");
    if (options_sharded_by(s) && is_standard(s->operands[2]))
        return fault_set(fault, "%s writes to a file, not to standard output",
                         options_sharded_by(s));
    if (options_sharded_by(s) && s->block)
        return fault_set(fault, "--block filters as a stream, which %s cannot split",
                         options_sharded_by(s));
    if (s->channels && !s->format && !container_raw_type(s->operands[1], &named))
        return fault_set(fault,
                         "--channels %lld: is for raw samples; name their type by --format, for "
                         "example --format f32, or leave it out if %s states its channels",
                         (long long)s->channels, s->operands[1]);
    if (s->config && (s->ir_format || s->ir_channel || (s->layout && !s->is_route)))
        return fault_set(fault, "%s: names whole files; leave out --ir-format, --ir-channel%s",
                         s->operands[0], s->is_route ? "" : " and --layout");
    if (s->config && !route_check(s, s->config, fault)) return false;
    if ((!isnan(s->azimuth) || !isnan(s->elevation)) && !s->is_route)
        return fault_set(fault,
                         "--azimuth and --elevation choose responses of a SOFA file (.sofa); %s is "
                         "none: leave them out, or name one",
                         operand_name(s, 0));
    if (s->rate_out > 0 &&
        (s->up > 1 || s->stride > 1 || s->first != NOT_GIVEN || s->last != NOT_GIVEN))
        return fault_set(fault, "--rate-out chooses --up and --stride, and the result is whole; "
                                "leave out --up, --stride, --first and --last");
    for (int i = 1; i + 1 < s->n_irs; i++)
        if (strcmp(s->files[i], "+") == 0)
            return fault_set(fault, "+: a chain is one name, without blanks: %s+%s",
                             s->files[i - 1], s->files[i + 1]);
    for (int i = 0; s->n_irs > 1 && i < s->n_irs; i++)
        if (route_is_made(s, s->files[i]))
            return fault_set(fault, "%s: a chain, a SOFA file or one of HeSuVi must be the only IR",
                             s->files[i]);
    if (s->lfe != 0 && !s->is_route)
        return fault_set(fault, "--lfe is the level of the LFE of --layout; leave it out");
    if (isfinite(s->dry) && (s->stride > 1 || s->up > 1))
        return fault_set(fault, "--dry with --stride or --up: the dry signal is not filtered and "
                                "would alias; leave out --dry");
    return range_check(s, fault) && level_check(s, fault) && search_check_usage(s, fault) &&
           check_format("--format", s->format, s->operands[1], fault) &&
           check_format("--ir-format", s->ir_format, s->operands[0], fault) &&
           engine_check(s, fault);
}

bool usage_begin(struct settings *s, struct processes *processes, struct fault *fault)
{
    if (!s->range && !processes_begin(processes, s->argc, s->argv, fault)) return false;
    s->shared = processes->n > 0;
    s->launched = processes_launched() > 0;
    s->quiet = s->quiet || processes->rank;
    s->verbose = s->verbose && !processes->rank;
    return check_options(s, fault) || fault_mark(fault, false);
}

bool usage_check_tune(const struct settings *settings, double rate, struct fault *fault)
{
    const double hz = settings->tune;
    const char *in = operand_name(settings, 1);
    if (!(rate > 0))
        return fault_usage(fault, "--tune %g: the sample rate of %s is unknown; add --rate", hz,
                           in);
    if (fabs(hz) <= rate / 2) return true;
    return fault_usage(fault,
                       "--tune %.10g: is not between -%.10g and %.10g, half the sample rate of %s",
                       hz, rate / 2, rate / 2, in);
}
