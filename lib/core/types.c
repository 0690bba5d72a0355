// SPDX-License-Identifier: MIT
// The version; texts of statuses; names and sizes of sample types.
#include <partita/problem.h>

static const char *const status_texts[] = {
    [PARTITA_OK] = "done",
    [PARTITA_ERR_ARG] = "argument out of range",
    [PARTITA_ERR_NOMEM] = "out of memory",
    [PARTITA_ERR_UNSUPPORTED] = "no engine can do this",
    [PARTITA_ERR_DEVICE] = "device absent or failed",
    [PARTITA_ERR_IO] = "file could not be read or written",
    [PARTITA_ERR_STATE] = "object is not in a state for this call",
};

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [PARTITA_TYPE_DEFAULT] = {"f32", 4}, [PARTITA_F32] = {"f32", 4},    [PARTITA_F64] = {"f64", 8},
    [PARTITA_CF32] = {"cf32", 8},        [PARTITA_CF64] = {"cf64", 16}, [PARTITA_F16] = {"f16", 2},
    [PARTITA_BF16] = {"bf16", 2},
};

const char *partita_version(void)
{
    return PARTITA_VERSION;
}

const char *partita_status_string(enum partita_status status)
{
    const bool known = (size_t)status < sizeof status_texts / sizeof *status_texts;
    return known ? status_texts[status] : "unknown status";
}

static bool is_type(enum partita_type type)
{
    return (size_t)type < sizeof types / sizeof *types;
}

size_t partita_type_size(enum partita_type type)
{
    return is_type(type) ? types[type].bytes : 0;
}

const char *partita_type_name(enum partita_type type)
{
    return is_type(type) ? types[type].name : "?";
}
