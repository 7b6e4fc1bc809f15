/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/balance.conf unchanged, except for ports and places of logs: the servers take turns, no
 * client misses a removed or drained server, and without servers the backup serves. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS 3
#define WORKERS 2
#define PORT "127.0.0.1:710"

/* The example as adapted for the harness: directives set by the harness are left out. */
struct example {
    char text[8192];
    size_t n;
};

static bool is_own(const char *line)
{
    return strncmp(line, "daemon ", 7) == 0 || strncmp(line, "error_log ", 10) == 0 ||
           strncmp(line, "pid ", 4) == 0;
}

/* Adds a line, with the daemon's ports in the place of those from 7100 on. */
static void add_line(struct example *example, char *line)
{
    char *port = strstr(line, PORT), *place = strstr(line, "access_log stderr");
    int n;

    if (port != NULL)
        n = snprintf(example->text + example->n, sizeof(example->text) - example->n,
            "%.*s127.0.0.1:$%s", (int)(port - line), line, port + strlen(PORT));
    else
        n = snprintf(example->text + example->n, sizeof(example->text) - example->n, "%s%s",
            place != NULL ? "access_log access.log" : line,
            place != NULL ? place + strlen("access_log stderr") : "");
    ck_assert(n >= 0 && (size_t)n < sizeof(example->text) - example->n);
    example->n += (size_t)n;
}

static void read_example(struct example *example)
{
    const char *source = getenv("srcdir");
    char path[512], line[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/conf/balance.conf", source != NULL ? source : ".");
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    example->n = 0;
    example->text[0] = '\0';
    while (fgets(line, sizeof(line), file) != NULL)
        if (*line != '#' && !is_own(line))
            add_line(example, line);
    fclose(file);
}

/* Takes a server away as the example says: its block becomes a comment. */
static void comment_out(struct example *example, unsigned server)
{
    char wanted[64], *at;

    snprintf(wanted, sizeof(wanted), "server {\n        listen 127.0.0.1:$%u;", server);
    at = strstr(example->text, wanted);
    ck_assert_ptr_nonnull(at);
    for (*at = '#'; *at != '}'; at++)
        if (*at == '\n')
            at[1] = '#';
}

static struct daemon *start(struct example *example)
{
    struct daemon *daemon = daemon_create(2 + SERVERS);

    read_example(example);
    daemon_configure(daemon, "%s", example->text);
    daemon_owns(daemon, "access.log");
    daemon_start(daemon);
    return daemon;
}

/* Loads the example, and waits until the workers of before, which listen to the end, have gone. */
static void reload(struct daemon *daemon, const struct example *example)
{
    daemon_configure(daemon, "%s", example->text);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, " serves in place of generation ");
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
}

/* Whether a session is answered with the words; every session is answered. */
static bool is_told(const struct daemon *daemon, const char *words)
{
    const char *text = client_read_all(client_open(daemon->ports[0]));

    ck_assert_msg(strncmp(text, "I am ", 5) == 0, "a client was told \"%s\"", text);
    return strstr(text, words) != NULL;
}

START_TEST(the_servers_take_turns)
{
    static const char *const names[] = { "server one", "server two", "server three" };
    struct example example;
    struct daemon *daemon = start(&example);
    char line[128];

    for (unsigned i = 0; i < 2 * SERVERS; i++)
        WAIT_FOR(is_told(daemon, names[i % SERVERS]));
    for (unsigned i = 1; i <= SERVERS; i++) {
        snprintf(line, sizeof(line), "127.0.0.1 to 127.0.0.1:%u, status 200, ", daemon->ports[i]);
        WAIT_FOR(strstr(daemon_text(daemon, "access.log"), line) != NULL);
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "unhealthy"), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(no_client_misses_a_server_that_is_taken_away)
{
    struct example example;
    struct daemon *daemon = start(&example);

    comment_out(&example, 2);
    reload(daemon, &example);
    for (unsigned i = 0; i < 4 * SERVERS; i++)
        ck_assert(!is_told(daemon, "server two") && !is_told(daemon, "backup"));
    daemon_wait_log(daemon, "peer is unhealthy (111: Connection refused) while connecting to");
    comment_out(&example, 1);
    comment_out(&example, 3);
    reload(daemon, &example);
    for (unsigned i = 0; i < 4 * SERVERS; i++)
        ck_assert(is_told(daemon, "backup"));
    read_example(&example);
    reload(daemon, &example);
    WAIT_FOR(is_told(daemon, "server two"));
    daemon_finish(daemon);
}
END_TEST

static void set_state(struct daemon *daemon, const char *state, unsigned server)
{
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%u", daemon->ports[server]);
    ck_assert_int_eq(
        daemon_run(daemon, "upstream", "servers", state, address, "-c", "forkbeard.conf", NULL), 0);
}

START_TEST(a_server_is_drained_and_comes_back)
{
    struct example example;
    struct daemon *daemon = start(&example);

    set_state(daemon, "drain", 3);
    for (unsigned i = 0; i < 4 * SERVERS; i++)
        ck_assert(!is_told(daemon, "server three") && !is_told(daemon, "backup"));
    set_state(daemon, "auto", 3);
    WAIT_FOR(is_told(daemon, "server three"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, the_servers_take_turns);
    tcase_add_test(tcase, no_client_misses_a_server_that_is_taken_away);
    tcase_add_test(tcase, a_server_is_drained_and_comes_back);
}

TEST_MAIN("balance", add_tests)
