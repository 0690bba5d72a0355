// SPDX-License-Identifier: MIT
#include "sized.h"

#include <string.h>

#include "base/sizes.h"

bool sized_read(void *ret, size_t own_bytes, const void *given, size_t given_bytes,
                const struct partita_log *log, const char *name)
{
    memset(ret, 0, own_bytes);
    if (!given) return true;
    memcpy(ret, given, size_min(own_bytes, given_bytes));
    for (size_t i = own_bytes; i < given_bytes; i++) {
        if (!((const unsigned char *)given)[i]) continue;
        return log_line(log, "%s: byte %zu is set, but version %s of the library knows %zu bytes",
                        name, i, PARTITA_VERSION, own_bytes);
    }
    return true;
}

bool options_read(struct partita_options *ret, const struct partita_options *given,
                  size_t given_bytes)
{
    const struct partita_log log = log_given(given);
    const bool known = sized_read(ret, sizeof *ret, given, given_bytes, &log, "options");
    static const bool unset[sizeof ret->reserved];
    ret->log = log;
    if (!known || !memcmp(ret->reserved, unset, sizeof unset)) return known;
    return log_line(&log, "options.reserved: must be false");
}

void sized_write(void *given, size_t given_bytes, const void *ret, size_t own_bytes)
{
    memset(given, 0, given_bytes);
    memcpy(given, ret, size_min(own_bytes, given_bytes));
}
