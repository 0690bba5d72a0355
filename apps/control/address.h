// SPDX-License-Identifier: MIT
// The addresses at which --osc and --web receive: PORT or ADDRESS:PORT.
#ifndef PARTITA_APPS_ADDRESS_H
#define PARTITA_APPS_ADDRESS_H

#include <netdb.h>

#include "base/fault.h"

// Finds an address, which the caller frees with freeaddrinfo; without ADDRESS it is this machine's
// own. kind: SOCK_STREAM or SOCK_DGRAM. NULL, with a fault that names the option: the text is none,
// with a port from 1 to 65535.
struct addrinfo *address_find(const char *option, const char *text, int kind, struct fault *fault);

#endif
