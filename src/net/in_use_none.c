/* SPDX-License-Identifier: BSD-2-Clause */
/* No table of sockets: POSIX has no way to find those of others, and each address seems to be
 * free. */
#include "net/in_use.h"

#include <stddef.h>

int in_use_read(struct in_use *in_use, const char *root)
{
    (void)root;
    *in_use = (struct in_use) { .sockets = NULL };
    return 0;
}
