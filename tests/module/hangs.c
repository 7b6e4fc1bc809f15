/* SPDX-License-Identifier: BSD-2-Clause */
/* A module with workers that do not become ready, or a configuration not read to the end, while a
 * named file exists. */
#include <forkbeard/forkbeard.h>

#include <time.h>
#include <unistd.h>

static const char *name; /* lives as long as the configuration */

static int set_name(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)value;
    (void)n;
    name = args[0];
    return 0;
}

/* Hangs until the test, with a deadline, removes the file. */
static void hang_while(const char *path)
{
    while (access(path, F_OK) == 0)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static int hang_reading(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)value;
    (void)n;
    hang_while(args[0]);
    return 0;
}

static int hangs_start(fb_worker *worker, void *state)
{
    (void)worker;
    (void)state;
    if (name != NULL)
        hang_while(name);
    return 0;
}

static size_t hangs_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = "hangs", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "hangs_while",
        .value = FB_VALUE_CUSTOM,
        .set = set_name,
        .args_least = 1,
        .args_most = 1 },
    { .name = "hangs_reading_while",
        .value = FB_VALUE_CUSTOM,
        .set = hang_reading,
        .args_least = 1,
        .args_most = 1 },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = hangs_data };

FB_PROTOCOL(hangs) = {
    FB_PROTOCOL_HEADER,
    .name = "hangs",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .worker_start = hangs_start,
};
