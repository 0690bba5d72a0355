// SPDX-License-Identifier: MIT
// web.h in a build without libmicrohttpd.
#include <stddef.h>

#include "web.h"

bool web_open(struct web **ret, const char *address, struct fault *fault)
{
    *ret = NULL;
    return fault_usage(fault,
                       "--web %s: this program was built without libmicrohttpd; install "
                       "libmicrohttpd-dev and build with -Dweb=enabled",
                       address);
}

void web_close(struct web *web)
{
    (void)web;
}

int web_file(const struct web *web)
{
    (void)web;
    return -1;
}

void web_serve(struct web *web, control_line_fn *run, void *user)
{
    (void)web, (void)run, (void)user;
}

void web_answer(struct web *web, uint64_t ticket, const char *line)
{
    (void)web, (void)ticket, (void)line;
}
