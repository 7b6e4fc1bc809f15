/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaves out tests with a requirement missing in the build, or in the daemon's event mechanism, by
 * the table lacking.def. The linux flavour, with epoll, lacks nothing itself. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL ""
#define AFFINITY "processors that a process is bound to"
#define EPOLL "epoll"
#define LISTS "the start of another process, by which lists of workers name them"
#define NOWAIT "writes that do not wait, whatever the flags of the descriptor"
#define ONE_EACH "signals and bells of one descriptor each"
#define OTHERS_FILES "a list of the files that another process has open"
#define PEERS "the process of a unix socket's peer, and its ancestors"
#define QUEUES "lengths of listening sockets' queues"
#define ROOM "room for more than 1024 descriptors"
#define SANDBOX "the sandbox"
#define SEALS "seals of memory, and descriptors of it that stay read-only"
#define SOCKETS "a list of all sockets and of who has them"
#define UNREAPED "the end of a process that nobody has waited for"

struct test_lack {
    const char *mechanism; /* NULL: a build lacks it */
    const char *program, *test;
    int first, last;
    const char *what;
};

static const struct test_lack test_lack_table[] = {
#if HAVE_EPOLL
#define LACKING(...)
#else
#define LACKING(...) { NULL, __VA_ARGS__ },
#endif
#define MECHANISM_LACKING(...) { __VA_ARGS__ },
#include "support/lacking.def"
#undef LACKING
#undef MECHANISM_LACKING
    { NULL, "", "", 0, 0, NULL },
};

/* Whether a row applies to the build, or to the mechanism asked for by the environment. */
static inline bool test_lack_applies(const struct test_lack *row)
{
    const char *use = getenv("FORKBEARD_TEST_USE");

    return row->mechanism == NULL || (use != NULL && strcmp(use, row->mechanism) == 0);
}

/* Returns the test's missing requirement; NULL: none. `program` is the test's file. */
static inline const char *test_lacks(const char *program, const char *test, int i)
{
    const char *slash = strrchr(program, '/'), *base = slash != NULL ? slash + 1 : program;

    for (const struct test_lack *row = test_lack_table; row->what != NULL; row++) {
        size_t n = strlen(row->program);

        if (strncmp(base, "test_", 5) == 0 && strncmp(base + 5, row->program, n) == 0 &&
            strcmp(base + 5 + n, ".c") == 0 &&
            (*row->test == '\0' || strcmp(row->test, test) == 0) && i >= row->first &&
            i <= row->last && test_lack_applies(row)) {
            printf("not run, %s lacks %s: %s:%d\n",
                row->mechanism != NULL ? row->mechanism : "this build", row->what, test, i);
            return row->what;
        }
    }
    return NULL;
}

#undef ALL
#undef AFFINITY
#undef EPOLL
#undef LISTS
#undef NOWAIT
#undef ONE_EACH
#undef OTHERS_FILES
#undef PEERS
#undef QUEUES
#undef ROOM
#undef SANDBOX
#undef SEALS
#undef SOCKETS
#undef UNREAPED
