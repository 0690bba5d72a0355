// SPDX-License-Identifier: MIT
// A locale whose numbers have a comma, made for the test, because few machines have one installed.
#ifndef PARTITA_TEST_COMMA_LOCALE_H
#define PARTITA_TEST_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// Sets it for the whole process, with files in `folder`; false if the machine has no localedef.
static inline bool comma_locale_set(const char *folder)
{
    char command[512], number[8];
    snprintf(command, sizeof command,
             "cd '%s' && printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \"\"\\n"
             "grouping -1\\nEND LC_NUMERIC\\n' >comma.src && "
             "{ localedef -c -i comma.src ./comma >/dev/null 2>&1; test -d comma; }",
             folder);
    if (system(command) != 0) return false;
    setenv("LOCPATH", folder, 1);
    if (!setlocale(LC_NUMERIC, "comma")) return false;
    snprintf(number, sizeof number, "%.1f", 0.5);
    return number[1] == ',';
}

#endif
