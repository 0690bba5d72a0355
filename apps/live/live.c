// SPDX-License-Identifier: MIT
#include "../commands.h"
int live_main(enum command command, int argc, char **argv) { (void)command; (void)argc; (void)argv; return 1; }
