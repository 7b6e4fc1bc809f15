/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the directory under /tmp, and removes it with a shell's rm. */
#include "support/directory.h"

#include <stdio.h>

char directory[] = "/tmp/fb_test.XXXXXX";

static void make_directory(void)
{
    if (mkdtemp(directory) == NULL)
        abort();
}

static void remove_directory(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", directory);
    if (system(command) != 0)
        abort();
}

void directory_add(TCase *tcase)
{
    tcase_add_unchecked_fixture(tcase, make_directory, remove_directory);
}
