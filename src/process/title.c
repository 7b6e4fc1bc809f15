/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets the process title by setproctitle() of libbsd, which overwrites the memory of argv and
 * environ. */
#include "process/title.h"

#include <assert.h>
#include <bsd/unistd.h>
#include <string.h>
#include <unistd.h>

static int width; /* length of argv[0]; 0: title_init() was not called, and titles stay */
static const char *latest = ""; /* arguments; the caller's */

void title_init(int argc, char **argv)
{
    assert(argc > 0);
    width = (int)strlen(argv[0]);
    setproctitle_init(argc, argv, environ);
}

void title_set(const char *role, const char *arguments)
{
    if (arguments != NULL)
        latest = arguments;
    if (width == 0)
        return;
    /* libbsd leaves a stray dot after a title that is shorter than argv[0] was */
    setproctitle("%s %-*s", role, width, latest);
}
