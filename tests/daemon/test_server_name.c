/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers of one address, chosen by the name that a client of OpenSSL asks for; and clients that
 * never finish asking. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/resources.h"
#include "features/hello.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIR(name) "ssl_certificate " name ".crt; ssl_certificate_key " name ".key; "
#define LISTEN "server { listen 127.0.0.1:$0 ssl; "
#define CLIENT "timeout 60 openssl s_client -connect 127.0.0.1:%u "

static const char *const names[] = { "a.test", "b.test", "c.test" };

/* Runs a line of the shell in the directory of the test; returns all output. */
static const char *shell_output(const struct daemon *daemon, const char *line)
{
    static char text[65536];
    char command[4096];
    FILE *pipe;

    snprintf(command, sizeof(command), "cd %s && { %s; } 2>&1 </dev/null", daemon->directory, line);
    pipe = popen(command, "re");
    ck_assert_ptr_nonnull(pipe);
    text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
    pclose(pipe);
    return text;
}

/* Makes certificates whose keys every worker can read; returns NULL where openssl is missing. */
static struct daemon *make_identities(void)
{
    static const char *const owned[] = { "a.test.crt", "a.test.key", "b.test.crt", "b.test.key",
        "c.test.crt", "c.test.key" };
    struct daemon *daemon = daemon_create(1);

    if (*shell_output(daemon, "command -v openssl") == '\0') {
        fprintf(stderr, "openssl is not installed: no client asks for a name\n");
        daemon_finish(daemon);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_int_eq(daemon_run(daemon, "certificate", "--self-signed", names[i], NULL), 0);
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        daemon_owns(daemon, owned[i]);
    ck_assert_str_eq(shell_output(daemon, "chmod 644 *.key"), "");
    return daemon;
}

/* ---- Clients of OpenSSL ---- */

#define SERVERS                                                                                    \
    "log_format name \"$ssl_server_name $status\"; ssl_session_tickets off; " LISTEN PAIR(         \
        "a.test") "access_log a.log name; return \"a [$ssl_server_name]\"; } " LISTEN              \
                  "server_name b.test *.b.test; " PAIR(                                            \
                      "b.test") "access_log b.log name; "                                          \
                                "return \"b [$ssl_server_name]\"; } " LISTEN                       \
                                "server_name c.test; ssl_ecdh_curve secp384r1; " PAIR(             \
                                    "c.test") "return \"c\"; } " LISTEN                            \
                                              "server_name none.test; return \"none\"; } " LISTEN  \
                                              "server_name no.test; ssl_reject_handshake on; "     \
                                              "access_log no.log name; } "

/* 1,800 bytes of protocols. */
#define LONG_ALPN "-alpn $(printf 'protocol-%%03d,' $(seq 139))last "

static const struct {
    const char *options, *certificate, *answer;
} asked[] = {
    { "-servername b.test", "b.test", "b [b.test]" },
    { "-servername x.B.TEST", "b.test", "b [x.B.TEST]" },
    { "-servername b.test -tls1_2", "b.test", "b [b.test]" },
    { "-servername c.test", "c.test", "c" },
    { "-servername other.test", "a.test", "a [other.test]" },
    { "-noservername", "a.test", "a []" },
    { "-servername none.test", "a.test", "none" },
    /* a long message, in one record and in many */
    { "-servername b.test " LONG_ALPN, "b.test", "b [b.test]" },
    { "-servername b.test -max_send_frag 512 " LONG_ALPN, "b.test", "b [b.test]" },
    /* the first key is of a curve that the server does not have, so the client asks twice */
    { "-servername c.test -groups X25519:P-384", "c.test", "c" },
};

static void expect_answer(struct daemon *daemon, unsigned i)
{
    char line[1024], subject[64];
    const char *output;

    snprintf(line, sizeof(line), CLIENT "-quiet -CAfile %s.crt -verify_return_error ",
        daemon->ports[0], asked[i].certificate);
    snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s", asked[i].options);
    output = shell_output(daemon, line);
    snprintf(subject, sizeof(subject), "CN = %s\n", asked[i].certificate);
    ck_assert_msg(strstr(output, subject) != NULL, "%s: %s", asked[i].options, output);
    ck_assert_msg(strcmp(output + strlen(output) - strlen(asked[i].answer), asked[i].answer) == 0,
        "%s: %s", asked[i].options, output);
}

static const char *const kinds[] = { "", "master_process off; " };

START_TEST(a_name_chooses_the_server)
{
    struct daemon *daemon = make_identities();
    char line[256];

    if (daemon == NULL)
        return;
    daemon_owns(daemon, "a.log");
    daemon_owns(daemon, "b.log");
    daemon_owns(daemon, "no.log");
    daemon_configure(daemon, "%sevents {} stream { " SERVERS " }", kinds[_i]);
    daemon_start(daemon);
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        expect_answer(daemon, i);
    snprintf(line, sizeof(line),
        CLIENT "-msg -groups X25519:P-384 -servername c.test 2>/dev/null | "
               "grep -c 'Handshake.*ClientHello'",
        daemon->ports[0]);
    ck_assert_str_eq(shell_output(daemon, line), "2\n");
    snprintf(line, sizeof(line), CLIENT "-quiet -servername no.test", daemon->ports[0]);
    ck_assert_ptr_nonnull(strstr(shell_output(daemon, line), "unrecognized name"));
    WAIT_FOR(strcmp(daemon_text(daemon, "no.log"), "- 500\n") == 0);
    WAIT_FOR(strcmp(daemon_text(daemon, "a.log"), "other.test 200\n- 200\n") == 0);
    WAIT_FOR(strcmp(daemon_text(daemon, "b.log"), "b.test 200\nx.B.TEST 200\nb.test 200\n"
                                                  "b.test 200\nb.test 200\n") == 0);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

#define ECHO_SERVERS(first, second)                                                                \
    "events {} stream { " LISTEN "server_name " first                                              \
    "; " PAIR("a.test") "echo; } " LISTEN "server_name " second "; " PAIR("b.test") "echo; } }"

/* Writes a line to the client, and waits for its echo. */
static void echo_line(struct daemon *daemon, FILE *client, const char *line)
{
    fputs(line, client);
    ck_assert_int_eq(fflush(client), 0);
    WAIT_FOR(strstr(daemon_text(daemon, "echoed"), line) != NULL);
}

START_TEST(a_reload_of_names_keeps_sessions)
{
    struct daemon *daemon = make_identities();
    char line[256];
    FILE *client;

    if (daemon == NULL)
        return;
    daemon_owns(daemon, "echoed");
    daemon_configure(daemon, ECHO_SERVERS("a.test", "b.test"));
    daemon_start(daemon);
    snprintf(line, sizeof(line),
        "cd %s && exec " CLIENT
        "-quiet -no_ign_eof -CAfile b.test.crt -verify_return_error -servername b.test "
        ">echoed 2>&1",
        daemon->directory, daemon->ports[0]);
    client = popen(line, "we");
    ck_assert_ptr_nonnull(client);
    WAIT_FOR(daemon_has(daemon, "echoed"));
    echo_line(daemon, client, "one\n");
    daemon_configure(daemon, ECHO_SERVERS("b.test", "a.test"));
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "generation 2 serves");
    echo_line(daemon, client, "two\n");
    ck_assert_ptr_nonnull(strstr(daemon_text(daemon, "echoed"), "CN = b.test\n"));
    snprintf(line, sizeof(line), CLIENT "-servername b.test", daemon->ports[0]);
    ck_assert_ptr_nonnull(strstr(shell_output(daemon, line), "CN = a.test\n"));
    pclose(client);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* ---- Clients that send what they like ---- */

static void send_bytes(int fd, const void *p, size_t n)
{
    ck_assert_int_eq(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Reads a ClientHello of OpenSSL that asks for www.example.com. */
static struct hello ask_for_example(void)
{
    const char *source = getenv("srcdir");
    struct hello hello = { .n = 0 };
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/hello/openssl_tls13",
        source != NULL ? source : ".");
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    hello.n = fread(hello.p, 1, sizeof(hello.p), file);
    fclose(file);
    ck_assert_uint_eq(hello.n, 339);
    return hello;
}

#define LOGGED(name, rest) "error_log " name ".log info; " rest

/* Starts two servers, of which the second is www.example.com. */
static struct daemon *start_two(const char *first, const char *second)
{
    struct daemon *daemon = make_identities();

    if (daemon == NULL)
        return NULL;
    daemon_owns(daemon, "first.log");
    daemon_owns(daemon, "second.log");
    daemon_configure(daemon,
        "events {} stream { " LISTEN LOGGED("first", PAIR("a.test")) "%s echo; } " LISTEN LOGGED(
            "second", PAIR("b.test")) "%s server_name www.example.com; echo; } }",
        first, second);
    daemon_start(daemon);
    return daemon;
}

static void stop_two(struct daemon *daemon, int client, const char *log, const char *line)
{
    WAIT_FOR(strstr(daemon_text(daemon, log), line) != NULL);
    close(client);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}

#define TIMED_OUT "client timed out (110: Connection timed out) while SSL handshaking"

START_TEST(a_name_that_never_comes_is_not_awaited)
{
    struct daemon *daemon = start_two("ssl_handshake_timeout 300ms;", "");
    struct hello hello = ask_for_example();
    int client;

    if (daemon == NULL)
        return;
    client = client_open(daemon->ports[0]);
    send_bytes(client, hello.p, hello.n - 1);
    client_expect_gone(client);
    ck_assert_ptr_null(strstr(daemon_text(daemon, "second.log"), "client"));
    stop_two(daemon, client, "first.log", TIMED_OUT);
}
END_TEST

START_TEST(the_time_is_the_chosen_server_s)
{
    struct daemon *daemon = start_two("", "ssl_handshake_timeout 300ms;");
    struct hello hello = ask_for_example();
    int client;

    if (daemon == NULL)
        return;
    client = client_open(daemon->ports[0]);
    for (size_t i = 0; i < hello.n; i += 100)
        send_bytes(client, hello.p + i, hello.n - i < 100 ? hello.n - i : 100);
    stop_two(daemon, client, "second.log", TIMED_OUT);
}
END_TEST

START_TEST(a_hello_has_64_kib_at_most)
{
    /* four records of 16,384 bytes: a list of ciphers, as long as can be, of a longer message */
    static const uint8_t begin[] = { 1, 1, 0, 0x80, 3, 3, [38] = 0, 0xff, 0xfe };
    static uint8_t record[5 + 16384] = { 22, 3, 1, 0x40, 0 };
    struct daemon *daemon = start_two("", "");
    uint8_t alert[7];
    int client;

    if (daemon == NULL)
        return;
    client = client_open(daemon->ports[0]);
    memcpy(record + 5, begin, sizeof(begin));
    for (int i = 0; i < 4; i++) {
        send_bytes(client, record, sizeof(record));
        memset(record + 5, 0, sizeof(begin));
    }
    ck_assert_int_eq(recv(client, alert, sizeof(alert), MSG_WAITALL), sizeof(alert));
    ck_assert_mem_eq(alert, "\x15\3\1\0\2\2\x32", sizeof(alert));
    stop_two(daemon, client, "first.log", "too long ClientHello while SSL handshaking");
}
END_TEST

/* Not TLS, and a message that no server may be chosen by, are answered by the default server. */
START_TEST(anything_else_has_the_default_server)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *line;
    } rows[] = {
        { "GET / HTTP/1.1\r\n\r\n", 18, "SSL_do_handshake() failed" },
        { "\x16\3\1\0\5\2\0\0\1\0", 10, "SSL_do_handshake() failed" },
    };
    struct daemon *daemon = start_two("", "");
    int client;

    if (daemon == NULL)
        return;
    client = client_open(daemon->ports[0]);
    send_bytes(client, rows[_i].bytes, rows[_i].n);
    stop_two(daemon, client, "first.log", rows[_i].line);
}
END_TEST

/* ---- `ssl_preread` ---- */

START_TEST(a_message_read_ahead_chooses_the_server)
{
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { "
                            "server { listen 127.0.0.1:$0; ssl_preread on; return first; } "
                            "server { listen 127.0.0.1:$0; server_name *.example.com; echo; } }");
    struct hello hello = ask_for_example(), other = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    uint8_t echoed[sizeof(hello.p)];
    int client = client_open(daemon->ports[0]);

    send_bytes(client, hello.p, hello.n);
    ck_assert_int_eq(recv(client, echoed, hello.n, MSG_WAITALL), (ssize_t)hello.n);
    ck_assert_mem_eq(echoed, hello.p, hello.n);
    close(client);
    client = client_open(daemon->ports[0]);
    send_bytes(client, other.p, other.n);
    client_expect(client, "first");
    close(client);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_message_read_ahead_chooses_the_server);
    if (!HAVE_OPENSSL)
        return;
    tcase_add_loop_test(tcase, a_name_chooses_the_server, 0, 2);
    tcase_add_test(tcase, a_reload_of_names_keeps_sessions);
    tcase_add_test(tcase, a_name_that_never_comes_is_not_awaited);
    tcase_add_test(tcase, the_time_is_the_chosen_server_s);
    tcase_add_test(tcase, a_hello_has_64_kib_at_most);
    tcase_add_loop_test(tcase, anything_else_has_the_default_server, 0, 2);
}

TEST_MAIN("server_name", add_tests)
