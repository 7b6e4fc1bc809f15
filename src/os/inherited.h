/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a child process does not get, although it is mapped when the child is forked
 * (os/linux/inherited.c). Where the system has no such thing (os/posix/inherited.c) the child has the
 * mapping, and is trusted with it or gives it up itself. */
#pragma once

#include <stddef.h>

/* The name of the call that the first two make, for messages. */
extern const char inherited_call[];

/* Keeps whole pages from each child that is forked from now on; -1 with errno. */
int inherited_never(void *base, size_t size);
/* Lets the children that are forked from now on have them again; -1 with errno. */
int inherited_again(void *base, size_t size);
/* In a child: gives up a mapping that it should not have, where it has it. */
void inherited_drop(void *base, size_t size);
