/* SPDX-License-Identifier: BSD-2-Clause */
/* The example "resp", loaded as a module: the replies to its clients, with the texts of Redis, and
 * the state shared by its workers. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MODULE "load_module " EXAMPLES_PATH "/resp/.libs/resp.so;"

static struct daemon *start_daemon(const char *directives)
{
    return daemon_start_new(1,
        MODULE "%s events { } stream {"
               " server { listen 127.0.0.1:$0 reuseport; resp; resp_keys 1000; } }",
        directives);
}

/* Sends requests, on a connection of their own, in order; "~" stands for the end of a line. */
static const struct {
    const char *request, *reply;
    bool closes;
} rows[] = {
    { "*1~$4~PING~", "+PONG~", false },
    { "ping~PING hello~*2~$4~Ping~$5~wo\nld~", "+PONG~$5~hello~$5~wo\nld~", false },
    { "~~*0~*-1~  ~ping~", "+PONG~", false },
    { "echo 'a b'~echo \"\\x41\\n\\\"\"~echo 'it\\'s'~echo a'b'~", "$3~a b~$3~A\n\"~$4~it's~$2~ab~",
        false },
    { "*3~$3~SET~$1~k~$5~value~*2~$3~GET~$1~k~*2~$3~DEL~$1~k~*2~$3~GET~$1~k~",
        "+OK~$5~value~:1~$-1~", false },
    { "*3~$3~SET~$1~k~$0~~*2~$3~GET~$1~k~del k~", "+OK~$0~~:1~", false },
    { "mset a 1 b 2~mget a x b~exists a a x~del a b x~mset a~mset a 1 b~",
        "+OK~*3~$1~1~$-1~$1~2~:2~:2~-ERR wrong number of arguments for 'mset' command~"
        "-ERR wrong number of arguments for 'mset' command~",
        false },
    { "set k 1 nx~set k 2 nx~set k 3 xx~get k~del k~set k 4 xx~get k~",
        "+OK~$-1~+OK~$1~3~:1~$-1~$-1~", false },
    { "append k one~append k ' two'~get k~getdel k~getdel k~exists k~set k v ex 100~append k w~ttl "
      "k~"
      "get k~del k~append k~",
        ":3~:7~$7~one two~$7~one two~$-1~:0~+OK~:2~:100~$2~vw~:1~"
        "-ERR wrong number of arguments for 'append' command~",
        false },
    { "set k v ex 100~ttl k~set k w keepttl~ttl k~set k x~ttl k~pttl k~ttl none~del k~",
        "+OK~:100~+OK~:100~+OK~:-1~:-1~:-2~:1~", false },
    { "set k v~expire k 50~ttl k~persist k~persist k~ttl k~pexpire k 70000~ttl k~expire k 0~"
      "get k~expire k 9~",
        "+OK~:1~:50~:1~:0~:-1~:1~:70~:1~$-1~:0~", false },
    { "set k v ex 0~set k v px -1~set k v ex x~set k v ex~set k v ex 1 px 1~set k v nx xx~"
      "set k v keepttl ex 1~set k v ex 9223372036854775807~set k v bogus~set k~exists k~",
        "-ERR invalid expire time in 'set' command~-ERR invalid expire time in 'set' command~"
        "-ERR value is not an integer or out of range~-ERR syntax error~-ERR syntax error~"
        "-ERR syntax error~-ERR syntax error~-ERR invalid expire time in 'set' command~"
        "-ERR syntax error~-ERR wrong number of arguments for 'set' command~:0~",
        false },
    { "incr n~incrby n 10~decr n~decrby n 20~get n~del n~", ":1~:11~:10~:-10~$3~-10~:1~", false },
    { "set n 9223372036854775807~incr n~decrby n -9223372036854775808~incrby n x~set n 01~incr n~"
      "set n ' 1'~incr n~set n -0~incr n~set n ''~incr n~set n 99999999999999999999~incr n~del n~",
        "+OK~-ERR increment or decrement would overflow~-ERR decrement would overflow~"
        "-ERR value is not an integer or out of range~+OK~"
        "-ERR value is not an integer or out of range~+OK~"
        "-ERR value is not an integer or out of range~+OK~"
        "-ERR value is not an integer or out of range~+OK~"
        "-ERR value is not an integer or out of range~+OK~"
        "-ERR value is not an integer or out of range~:1~",
        false },
    { "set n 5 ex 100~incr n~ttl n~set m -1~decrby m 9223372036854775807~decr m~del n m~",
        "+OK~:6~:100~+OK~:-9223372036854775808~-ERR increment or decrement would overflow~:2~",
        false },
    { "select 0~select 1~select x~dbsize~",
        "+OK~-ERR DB index is out of range~"
        "-ERR value is not an integer or out of range~:0~",
        false },
    { "config get save~config get save appendonly~config get other~config~config set a b~",
        "*2~$4~save~$0~~*4~$4~save~$0~~$10~appendonly~$2~no~*0~"
        "-ERR wrong number of arguments for 'config' command~"
        "-ERR unknown subcommand 'set'. Try CONFIG HELP.~",
        false },
    { "command~command docs get~command count~client setname a~client setinfo lib-name x~"
      "client getname~client kill~client setname~",
        "*0~*0~:26~+OK~+OK~$-1~-ERR unknown subcommand 'kill'. Try CLIENT HELP.~"
        "-ERR wrong number of arguments for 'client|setname' command~",
        false },
    { "hello 3~lpush a 'b c'~get~get a b~*1~$0~~",
        "-ERR unknown command 'hello', with args beginning with: '3' ~"
        "-ERR unknown command 'lpush', with args beginning with: 'a' 'b c' ~"
        "-ERR wrong number of arguments for 'get' command~"
        "-ERR wrong number of arguments for 'get' command~"
        "-ERR unknown command '', with args beginning with: ~",
        false },
    { "info keyspace~", "$24~# Keyspace~db0:keys=0~~", false },
    { "ping~quit~set after quit~", "+PONG~+OK~", true },
    { "*x~", "-ERR Protocol error: invalid multibulk length~", true },
    { "*01~", "-ERR Protocol error: invalid multibulk length~", true },
    { "*4097~", "-ERR Protocol error: invalid multibulk length~", true },
    { "*99999999999999999999999999", "-ERR Protocol error: invalid multibulk length~", true },
    { "*1~+OK~", "-ERR Protocol error: expected '$', got '+'~", true },
    { "*2~$4~PING~~", "-ERR Protocol error: expected '$', got ' '~", true },
    { "*1~$-1~", "-ERR Protocol error: invalid bulk length~", true },
    { "*1~$4097~", "-ERR Protocol error: invalid bulk length~", true },
    { "ping~echo \"a~", "+PONG~-ERR Protocol error: unbalanced quotes in request~", true },
    { "echo 'a'b~", "-ERR Protocol error: unbalanced quotes in request~", true },
};

/* A copy with ends of lines; the text is given back. */
static char *with_lines(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *p = out;

    ck_assert_ptr_nonnull(out);
    for (; *text != '\0'; text++)
        if (*text != '~')
            *p++ = *text;
        else
            p = stpcpy(p, "\r\n");
    *p = '\0';
    return out;
}

/* A message cannot be sent to a connection that the peer has closed. */
static void send_bytes(int client, const char *text)
{
    for (; *text != '\0'; text++)
        if (send(client, text, 1, MSG_NOSIGNAL) != 1)
            return;
}

START_TEST(replies)
{
    struct daemon *daemon = start_daemon("");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *request = with_lines(rows[i].request), *reply = with_lines(rows[i].reply);
        int client = client_open(daemon->ports[0]);

        if (_i == 0)
            client_send(client, request);
        else
            send_bytes(client, request);
        client_expect(client, reply);
        if (rows[i].closes)
            client_expect_gone(client);
        else
            ck_assert(client_is_quiet(client));
        close(client);
        free(request);
        free(reply);
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(limits)
{
    struct daemon *daemon = daemon_create(1);
    int client;

    daemon_configure(daemon, MODULE "events { } stream { server { listen 127.0.0.1:$0; resp;"
                                    " resp_keys 2; resp_key_max 4; resp_value_max 8; } }");
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    client_send(client, "set abcd 12345678\r\nset abcde x\r\nget abcde\r\nset b 123456789\r\n");
    client_expect(client,
        "+OK\r\n-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n$-1\r\n"
        "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    client_send(client, "set b 2\r\nset c 3\r\nincr d\r\nset b 4\r\ndbsize\r\n");
    client_expect(client,
        "+OK\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n"
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n+OK\r\n:2\r\n");
    client_send(client, "*2\r\n$4\r\nECHO\r\n$9\r\n");
    client_expect(client, "-ERR Protocol error: invalid bulk length\r\n");
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(too_large_to_be_shared)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        MODULE "events { } stream { server { listen 127.0.0.1:$0; resp; resp_value_max 2m; } }");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "\"2m\""));
    daemon_finish(daemon);
}
END_TEST

#define CLIENTS 8
#define TIMES 200

/* Simultaneous increments by all workers are all counted. */
START_TEST(counts_over_workers)
{
    struct daemon *daemon = start_daemon("worker_processes 3;");
    char request[7 * TIMES + 1], *p = request, reply[64];
    int clients[CLIENTS], one;

    for (int i = 0; i < TIMES; i++)
        p = stpcpy(p, "incr n\n");
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_open(daemon->ports[0]);
    for (int i = 0; i < CLIENTS; i++)
        client_send(clients[i], request);
    for (int i = 0; i < CLIENTS; i++) {
        shutdown(clients[i], SHUT_WR);
        while (recv(clients[i], reply, sizeof(reply), 0) > 0)
            ;
        close(clients[i]);
    }
    one = client_open(daemon->ports[0]);
    snprintf(reply, sizeof(reply), "$4\r\n%d\r\n", CLIENTS * TIMES);
    client_send(one, "get n\r\n");
    client_expect(one, reply);
    close(one);
    daemon_finish(daemon);
}
END_TEST

/* Far more is asked for than is sent at once: the client is not answered until it reads. */
START_TEST(many_large_replies)
{
    struct daemon *daemon = start_daemon("");
    int client = client_open(daemon->ports[0]);
    char value[4001] = "", bytes[8192];
    size_t all = 0;
    ssize_t n;

    memset(value, 'v', 4000);
    client_send(client, "set k ");
    client_send(client, value);
    client_send(client, "\r\n");
    client_expect(client, "+OK\r\n");
    for (int i = 0; i < 1000; i++)
        client_send(client, "get k\r\n");
    client_send(client, "quit\r\n");
    while ((n = recv(client, bytes, sizeof(bytes), 0)) > 0)
        all += (size_t)n;
    ck_assert_int_eq(n, 0);
    ck_assert_uint_eq(all, 1000 * (strlen("$4000\r\n") + 4000 + 2) + strlen("+OK\r\n"));
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Keys live in the map, beyond the workers' lives. */
START_TEST(keys_survive_a_reload)
{
    struct daemon *daemon = start_daemon("worker_processes 2;");
    int client = client_open(daemon->ports[0]);

    client_send(client, "set k v\r\n");
    client_expect(client, "+OK\r\n");
    daemon_signal(daemon, SIGHUP);
    client_expect_end(client); /* idle, and its worker drains */
    close(client);
    client = client_open(daemon->ports[0]);
    client_send(client, "get k\r\ninfo clients\r\n");
    client_expect(client, "$1\r\nv\r\n$32\r\n# Clients\r\nconnected_clients:1\r\n\r\n");
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Keys take whole pages; the map is full at 40 keys. */
START_TEST(a_limit_of_memory)
{
    struct daemon *daemon = daemon_start_new(1,
        MODULE "worker_processes 2; events { } stream { server { listen 127.0.0.1:$0 reuseport;"
               " resp; resp_keys 1000; resp_value_max 8k; resp_memory 160k; } }");
    int client = client_open(daemon->ports[0]);
    char request[32];

    for (int i = 0; i < 40; i++) {
        snprintf(request, sizeof(request), "set %d v\r\n", i);
        client_send(client, request);
        client_expect(client, "+OK\r\n");
    }
    client_send(client, "set more v\r\n");
    client_expect(client, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    client_send(client, "del 7\r\nset more v\r\ndbsize\r\n");
    client_expect(client, ":1\r\n+OK\r\n:40\r\n");
    close(client);
    daemon_finish(daemon);
}
END_TEST

static int64_t metric_of(const struct daemon *daemon, unsigned i, const char *name)
{
    struct json_value metric = control_at(control_ask(daemon, "status"), "metrics", i);

    ck_assert_str_eq(control_text(metric, "protocol"), "resp");
    ck_assert_str_eq(control_text(metric, "name"), name);
    return control_number(metric, "total");
}

/* Totals of all workers, after a worker is killed: the counts stay, and the clients are gone. */
START_TEST(metrics_are_in_the_status)
{
    struct daemon *daemon = start_daemon("worker_processes 2;");
    int clients[8];
    pid_t worker;

    daemon_expects(daemon, "exited on signal 9");
    for (int i = 0; i < 8; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_send(clients[i], "ping\r\n");
        client_expect(clients[i], "+PONG\r\n");
    }
    ck_assert_int_eq(metric_of(daemon, 0, "commands"), 8);
    ck_assert_int_eq(metric_of(daemon, 2, "clients"), 8);
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "\nMETRIC            KIND                    TOTAL\n"
                                              "resp.commands     counter                     8\n"));
    ck_assert_ptr_nonnull(
        strstr(daemon->out, "\nresp.clients      gauge                       8\n"));

    worker = proc_holder(daemon->pid, proc_connection(clients[0]));
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    WAIT_FOR(metric_of(daemon, 2, "clients") < 8);
    ck_assert_int_eq(metric_of(daemon, 0, "commands"), 8);
    for (int i = 0; i < 8; i++)
        close(clients[i]);
    WAIT_FOR(metric_of(daemon, 2, "clients") == 0);
    ck_assert_int_eq(metric_of(daemon, 1, "connections"), 8);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, replies, 0, 2);
    tcase_add_test(tcase, limits);
    tcase_add_test(tcase, too_large_to_be_shared);
    tcase_add_test(tcase, counts_over_workers);
    tcase_add_test(tcase, many_large_replies);
    tcase_add_test(tcase, keys_survive_a_reload);
    tcase_add_test(tcase, metrics_are_in_the_status);
    tcase_add_test(tcase, a_limit_of_memory);
}

TEST_MAIN("resp", add_tests)
