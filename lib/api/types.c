// SPDX-License-Identifier: MIT
// The version; texts of statuses; names and sizes of sample types.
#include <partita/problem.h>

const char *partita_version(void)
{
    return PARTITA_VERSION;
}

const char *partita_status_string(enum partita_status status)
{
    switch (status) {
    case PARTITA_OK:
        return "done";
    case PARTITA_ERR_ARG:
        return "argument out of range";
    case PARTITA_ERR_NOMEM:
        return "out of memory";
    case PARTITA_ERR_UNSUPPORTED:
        return "no engine can do this";
    case PARTITA_ERR_DEVICE:
        return "device absent or failed";
    case PARTITA_ERR_IO:
        return "file could not be read or written";
    case PARTITA_ERR_STATE:
        return "object is not in a state for this call";
    }
    return "unknown status";
}

size_t partita_type_size(enum partita_type type)
{
    switch (type) {
    case PARTITA_TYPE_DEFAULT:
    case PARTITA_F32:
        return 4;
    case PARTITA_F64:
    case PARTITA_CF32:
        return 8;
    case PARTITA_CF64:
        return 16;
    case PARTITA_F16:
    case PARTITA_BF16:
        return 2;
    }
    return 0;
}

const char *partita_type_name(enum partita_type type)
{
    switch (type) {
    case PARTITA_TYPE_DEFAULT:
    case PARTITA_F32:
        return "f32";
    case PARTITA_F64:
        return "f64";
    case PARTITA_CF32:
        return "cf32";
    case PARTITA_CF64:
        return "cf64";
    case PARTITA_F16:
        return "f16";
    case PARTITA_BF16:
        return "bf16";
    }
    return "?";
}
