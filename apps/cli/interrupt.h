// SPDX-License-Identifier: MIT
// Signal handling: unfinished files are removed, and an endless input can be ended from the
// keyboard.
#ifndef PARTITA_APPS_INTERRUPT_H
#define PARTITA_APPS_INTERRUPT_H

// Installs handlers for SIGINT, SIGTERM and SIGHUP that remove the unfinished output before the
// program ends.
void interrupt_install(void);

// Makes the first SIGINT end the input instead. Returns a descriptor that then becomes readable, or
// -1 on failure.
int interrupt_as_end_of_input(void);

#endif
