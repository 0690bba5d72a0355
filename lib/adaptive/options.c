// SPDX-License-Identifier: MIT
// Checks of options.
#include "adaptive.h"
#include "api/sized.h"

enum partita_status adaptive_resolve(struct partita_adaptive_options *ret,
                                     const struct partita_adaptive_options *given, size_t bytes)
{
    const struct partita_log log = log_given(given);
    if (!sized_read(ret, sizeof *ret, given, bytes, &log, "options"))
        return PARTITA_ERR_UNSUPPORTED;
    ret->log = log;
    if (!ret->type) ret->type = PARTITA_F32;
    if (!ret->channels) ret->channels = 1;
    if (!ret->block) ret->block = 256;
    if (ret->step == 0) ret->step = 0.5;
    if (ret->gain == 0) ret->gain = 1;
    if (ret->drift == 0) ret->drift = 1e-6;
    if (ret->silence == 0) ret->silence = 1e-10;
    const struct {
        const char *name;
        double value, least, largest;
    } fields[] = {
        {"type", ret->type, PARTITA_F32, PARTITA_F64},
        {"control", ret->control, PARTITA_ADAPTIVE_STATE_SPACE, PARTITA_ADAPTIVE_FIXED},
        {"constraint", ret->constraint, PARTITA_ADAPTIVE_ROTATING, PARTITA_ADAPTIVE_NONE},
        {"channels", (double)ret->channels, 1, 1024},
        {"taps", (double)ret->taps, 1, 1 << 24},
        {"block", (double)ret->block, 1, 1 << 20},
        {"step", ret->step, 1e-6, 1},
        {"gain", ret->gain, 1e-12, 1e12},
        {"drift", ret->drift, 1e-12, 0.5},
        {"silence", ret->silence, 1e-15, 1e6},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!(fields[i].value >= fields[i].least && fields[i].value <= fields[i].largest))
            return log_error(&log, PARTITA_ERR_ARG, "adaptive: %s = %.10g: from %.10g to %.10g",
                             fields[i].name, fields[i].value, fields[i].least, fields[i].largest);
    if (!ret->allocator.allocate != !ret->allocator.release)
        return log_error(&log, PARTITA_ERR_ARG, "adaptive: allocator: set both functions or none");
    return PARTITA_OK;
}
