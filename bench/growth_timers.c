/* SPDX-License-Identifier: BSD-2-Clause */
/* growth_timers N: sets, moves, cancels and sets again N timers of one connection, has them expire
 * in a simulated worker, and prints CPU time per timer in ns: set, move, cancel, expiry. */
#include <err.h>
#include <forkbeard/test.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static fb_conn *connection;
static uint32_t expired;

static int note_opened(fb_conn *conn, void *state)
{
    (void)state;
    connection = conn;
    return 0;
}

static void note_expired(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn, (void)state, (void)id;
    expired++;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = note_opened, .timer = note_expired };

static const fb_directive directives[] = {
    { .name = "timers", .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(timers) = {
    FB_PROTOCOL_HEADER,
    .name = "timers",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void set_all(uint32_t n, uint64_t ms)
{
    for (uint32_t i = 0; i < n; i++)
        fb_timer(connection, i * 2654435761u, ms + i * 40503u % 60000);
}

int main(int argc, char **argv)
{
    uint32_t n = argc == 2 ? (uint32_t)atoi(argv[1]) : 0;
    fb_test *test = fb_test_start(&fb_protocol_timers, "timers; first_byte_timeout 0;");
    double at[5];

    if (n == 0 || test == NULL)
        errx(1, "usage: growth_timers N");
    fb_test_connect(test);
    fb_test_run(test);
    at[0] = cpu_ns();
    set_all(n, 100000);
    at[1] = cpu_ns();
    set_all(n, 10000);
    at[2] = cpu_ns();
    for (uint32_t i = 0; i < n; i++)
        fb_timer_cancel(connection, i * 2654435761u);
    at[3] = cpu_ns();
    /* all at once: the simulated worker checks its timers in every turn */
    for (uint32_t i = 0; i < n; i++)
        fb_timer(connection, i * 2654435761u, 10000);
    at[4] = cpu_ns();
    fb_test_pass(test, 70000);
    if (expired != n)
        errx(1, "%u of %u timers have expired", (unsigned)expired, (unsigned)n);
    printf("%.0f %.0f %.0f %.0f\n", (at[1] - at[0]) / n, (at[2] - at[1]) / n, (at[3] - at[2]) / n,
        (cpu_ns() - at[4]) / n);
    return fb_test_end(&test);
}
