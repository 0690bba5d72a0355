// SPDX-License-Identifier: MIT
// Looks for a CUDA device in the folder that is its argument, and prints whether the system says
// that the caller must not choose code (AT_SECURE), and what the library found.
#include <partita/partita.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char text[512];
    if (argc > 1 && chdir(argv[1])) return 1;
    (void)partita_device_describe("cuda", text, sizeof text);
    printf("%lu %s\n", getauxval(AT_SECURE), text);
    return 0;
}
