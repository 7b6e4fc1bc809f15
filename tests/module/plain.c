/* SPDX-License-Identifier: BSD-2-Clause */
/* A module without need of the daemon, loadable by any program. PLAIN is the name. */
#include <fcntl.h>
#include <forkbeard/forkbeard.h>
#include <unistd.h>

#define TEXT(x) #x
#define NAME(x) TEXT(x)

static size_t plain_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    (void)state;
    return in.n;
}

static const fb_directive directives[] = {
    { .name = NAME(PLAIN), .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = plain_data };

#ifdef PLAIN_OPENS
/* Mimics a library used by the modules of all generations: loaded once, with the same open files
 * for ever. */
__attribute__((constructor)) static void open_once(void)
{
    int fd = fcntl(PLAIN_OPENS, F_GETFD) == -1 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

    if (fd == -1)
        return;
    dup3(fd, PLAIN_OPENS, O_CLOEXEC);
    close(fd);
}
#endif

/* The number of calls; each load counts separately. */
FB_SDK unsigned plain_count(void);
unsigned plain_count(void)
{
    static unsigned count;

    return ++count;
}

FB_PROTOCOL(plain) = {
    FB_PROTOCOL_HEADER,
    .name = NAME(PLAIN),
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
