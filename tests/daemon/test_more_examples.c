/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples with connections to servers of the clients' choice, or with shared state, loaded as
 * modules, with their real clients. Programs that are not installed are left out, with a line. */
#include "daemon/client.h"
#include "daemon/daemon.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODULE(name) "load_module " EXAMPLES_PATH "/" name "/.libs/" name ".so;"

/* Runs a command line, and returns the status; *output is the output, until the next call. */
static int run(const char **output, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int run(const char **output, const char *format, ...)
{
    static char text[4096];
    char line[1024];
    va_list args;
    FILE *pipe;
    int status;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
    status = pclose(pipe);
    ck_assert(WIFEXITED(status));
    *output = text;
    return WEXITSTATUS(status);
}

static bool is_there(const char *program)
{
    const char *output;

    if (run(&output, "command -v %s", program) == 0)
        return true;
    fprintf(stderr, "%s is not installed, and not tried\n", program);
    return false;
}

/* Balance */

/* A worker checks the servers, and the second worker hears of it. */
START_TEST(balance_knows_who_answers)
{
    struct daemon *daemon = daemon_start_new(3,
        MODULE("balance") "worker_processes 2; error_log error.log info; events { } stream {"
                          "balance_check 50ms;"
                          "server { listen 127.0.0.1:$0; balance 127.0.0.1:$1 127.0.0.1:$2; }"
                          "server { listen 127.0.0.1:$1; return here; } }");

    daemon_wait_log(daemon, "the server does not answer: Connection refused");
    for (int i = 0; i < 20; i++)
        ck_assert_str_eq(client_read_all(client_open(daemon->ports[0])), "here");
    daemon_finish(daemon);
}
END_TEST

/* Chat */

/* Enters the first client; the worker then knows the two others. */
static void enter_first(int client)
{
    char text[] = "- ann\n- worker 1 of 3, which knows of 0 others\n";

    client_send(client, "ann\n");
    do {
        client_send(client, "/who\n");
        ck_assert_int_eq(recv(client, text, strlen(text), MSG_WAITALL), (ssize_t)sizeof(text) - 1);
    } while (strstr(text, "of 2 others") == NULL);
}

START_TEST(chat_over_workers)
{
    struct daemon *daemon = daemon_start_new(1,
        MODULE("chat") "worker_processes 3; error_log error.log info; events { } stream {"
                       "server { listen 127.0.0.1:$0 reuseport; chat; } }");
    int ann = client_open(daemon->ports[0]), others[10];
    char name[16], line[64];

    enter_first(ann);
    for (int i = 0; i < 10; i++) {
        others[i] = client_open(daemon->ports[0]);
        snprintf(name, sizeof(name), "n%d\n", i);
        client_send(others[i], name);
        snprintf(line, sizeof(line), "n%d comes\n", i);
        client_expect(ann, line);
    }
    for (int i = 0; i < 10; i++) {
        snprintf(line, sizeof(line), "@ann from %d\n", i);
        client_send(others[i], line);
        snprintf(line, sizeof(line), "n%d to you: from %d\n", i, i);
        client_expect(ann, line);
        close(others[i]);
        snprintf(line, sizeof(line), "n%d goes\n", i);
        client_expect(ann, line);
    }
    client_send(ann, "@n1 are you there?\n");
    client_expect(ann, "- not told\n");
    close(ann);
    daemon_finish(daemon);
}
END_TEST

/* Socks5 */

#define CURL "curl -q -sS --noproxy '' --max-time 20 "

static struct daemon *start_socks5(void)
{
    struct daemon *daemon = daemon_create(3);

    daemon_write(daemon, "forkbeard.conf",
        "error_log error.log info;\npid forkbeard.pid;\n" MODULE(
            "socks5") "events { }\n"
                      "stream {\n"
                      "server { listen 127.0.0.1:$0; socks5; socks5_local 127.0.0.9; }\n"
                      "server { listen 127.0.0.1:$1; socks5; socks5_user me 'a secret'; }\n"
                      "server { listen 127.0.0.1:$2; return \"HTTP/1.0 200 OK\r\n\r\nhello\"; }\n"
                      "}\n");
    daemon_start(daemon);
    return daemon;
}

START_TEST(socks5_serves_curl)
{
    struct daemon *daemon;
    const char *output;

    if (!is_there("curl"))
        return;
    daemon = start_socks5();
    ck_assert_int_eq(run(&output, CURL "--socks5 127.0.0.1:%d http://127.0.0.1:%d/",
                         daemon->ports[0], daemon->ports[2]),
        0);
    ck_assert_str_eq(output, "hello");
    ck_assert_int_eq(
        run(&output, CURL "--socks5-hostname 'me:a%%20secret@127.0.0.1:%d' http://127.0.0.1:%d/",
            daemon->ports[1], daemon->ports[2]),
        0);
    ck_assert_str_eq(output, "hello");
    ck_assert_int_eq(run(&output, CURL "--socks5-hostname 127.0.0.1:%d http://localhost:%d/",
                         daemon->ports[0], daemon->ports[2]),
        0);
    ck_assert_str_eq(output, "hello");
    ck_assert_int_eq(run(&output, CURL "--socks5 'me:wrong@127.0.0.1:%d' http://127.0.0.1:%d/ 2>&1",
                         daemon->ports[1], daemon->ports[2]),
        97);
    ck_assert_ptr_nonnull(strstr(output, "rejected by the SOCKS5 server"));
    daemon_wait_log(daemon, " client 127.0.0.9:");
    daemon_finish(daemon);
}
END_TEST

/* No server has the port. */
START_TEST(socks5_tells_curl_why_not)
{
    struct daemon *daemon;
    const char *output;

    if (!is_there("curl"))
        return;
    daemon = start_socks5();
    ck_assert_int_eq(
        run(&output, CURL "--socks5 127.0.0.1:%d http://127.0.0.1:1/ 2>&1", daemon->ports[0]), 97);
    ck_assert_ptr_nonnull(strstr(output, "(5)"));
    daemon_wait_log(daemon, "connect() failed (111: Connection refused)");
    daemon_finish(daemon);
}
END_TEST

/* Tail */

START_TEST(tail_follows_the_log)
{
    struct daemon *daemon = daemon_start_new(1,
        MODULE("tail") "error_log error.log info; events { } stream { first_byte_timeout off;"
                       "server { listen 127.0.0.1:$0; tail $D/file; } }");
    int client = client_open(daemon->ports[0]);

    daemon_wait_log(daemon, " connected to ");
    daemon_write(daemon, "file", "a line\n");
    client_expect(client, "a line\n");
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, balance_knows_who_answers);
    tcase_add_test(tcase, chat_over_workers);
    tcase_add_test(tcase, socks5_serves_curl);
    tcase_add_test(tcase, socks5_tells_curl_why_not);
    tcase_add_test(tcase, tail_follows_the_log);
}

TEST_MAIN("more_examples", add_tests)
