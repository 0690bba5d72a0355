// SPDX-License-Identifier: MIT
#include "sized.h"

#include <string.h>

#include "base/sizes.h"

bool sized_read(void *own, size_t own_bytes, const void *given, size_t given_bytes,
                const struct partita_log *log, const char *name)
{
    memset(own, 0, own_bytes);
    if (!given) return true;
    memcpy(own, given, size_min(own_bytes, given_bytes));
    for (size_t i = own_bytes; i < given_bytes; i++) {
        if (!((const unsigned char *)given)[i]) continue;
        return log_line(log, "%s: byte %zu is set, but version %s of the library knows %zu bytes",
                        name, i, PARTITA_VERSION, own_bytes);
    }
    return true;
}

bool options_read(struct partita_options *own, const struct partita_options *given,
                  size_t given_bytes)
{
    const struct partita_log log = given && given->log.line ? given->log : log_default();
    const bool known = sized_read(own, sizeof *own, given, given_bytes, &log, "options");
    static const bool unset[sizeof own->reserved];
    own->log = log;
    if (!known || !memcmp(own->reserved, unset, sizeof unset)) return known;
    return log_line(&log, "options.reserved: must be false");
}

void sized_write(void *given, size_t given_bytes, const void *own, size_t own_bytes)
{
    memset(given, 0, given_bytes);
    memcpy(given, own, size_min(own_bytes, given_bytes));
}
