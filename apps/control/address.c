// SPDX-License-Identifier: MIT
#include "address.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum { MAX_PORT = 65535 };

// getaddrinfo takes ports modulo 65536 and accepts none, so ports are checked here. The names of
// ports (/etc/services) are not accepted.
struct addrinfo *address_find(const char *option, const char *text, int kind, struct fault *fault)
{
    const struct addrinfo hints = {.ai_socktype = kind,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    struct addrinfo *found = NULL;
    struct number number;
    if (port[strspn(port, "0123456789")] || !number_parse(port, QUANTITY_COUNT, &number) ||
        !number.whole || number.integer < 1 || number.integer > MAX_PORT) {
        fault_usage(fault,
                    "%s %s: must be PORT or ADDRESS:PORT, with a whole number from 1 to %d as the "
                    "port",
                    option, text, MAX_PORT);
        return NULL;
    }
    char *host = colon ? strndup(text, (size_t)(colon - text)) : strdup("127.0.0.1");
    const int error = host ? getaddrinfo(host, port, &hints, &found) : EAI_MEMORY;
    free(host);
    if (!error) return found;
    fault_usage(fault, "%s %s: must be PORT or ADDRESS:PORT, such as 0.0.0.0:9000: %s", option,
                text, gai_strerror(error));
    return NULL;
}
