// SPDX-License-Identifier: MIT
// Signals: nothing unfinished is left behind, and an endless input can be ended from the keyboard.
#ifndef PARTITA_APPS_INTERRUPT_H
#define PARTITA_APPS_INTERRUPT_H

// From now on SIGINT, SIGTERM and SIGHUP remove the unfinished output before they end the program.
void interrupt_install(void);

// Makes the first SIGINT the end of the input instead, and returns a descriptor that becomes
// readable then; -1 without.
int interrupt_as_end_of_input(void);

#endif
