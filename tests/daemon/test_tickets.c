/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets of the real daemon: sessions are resumed by every worker, over reloads, upgrades and the
 * rollback, by keys that no worker has. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/proc_memory.h"
#include "daemon/upgrade.h"
#include "keeper/ticket_ring.h"
#include "support/certificates.h"
#include "support/directory.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PROCESSES 16
#define WORKERS 4
#define MEMORY_NAME "forkbeard-tickets"

enum { TLS_1_2_LOOP, TLS_1_3_LOOP, VERSIONS };

/* A client that keeps its last session. */
struct visitor {
    SSL_CTX *context;
    SSL_SESSION *session; /* NULL: none yet */
    pid_t workers[PROCESSES];
    unsigned worker_n; /* the workers that have served */
};

static void open_visitor(struct visitor *visitor, int version)
{
    version = version == TLS_1_2_LOOP ? TLS1_2_VERSION : TLS1_3_VERSION;
    *visitor = (struct visitor) { .context = SSL_CTX_new(TLS_client_method()) };
    ck_assert_int_eq(SSL_CTX_set_min_proto_version(visitor->context, version), 1);
    ck_assert_int_eq(SSL_CTX_set_max_proto_version(visitor->context, version), 1);
}

static void close_visitor(struct visitor *visitor)
{
    SSL_SESSION_free(visitor->session);
    SSL_CTX_free(visitor->context);
}

static void note_worker(struct visitor *visitor, pid_t pid)
{
    if (proc_has(visitor->workers, visitor->worker_n, pid))
        return;
    ck_assert_uint_lt(visitor->worker_n, PROCESSES);
    visitor->workers[visitor->worker_n++] = pid;
}

/* Reads "PID REUSED" to the end of the session. */
static void read_answer(struct visitor *visitor, SSL *ssl)
{
    char text[64];
    size_t n = 0;
    int more;

    while (
        n < sizeof(text) - 1 && (more = SSL_read(ssl, text + n, (int)(sizeof(text) - 1 - n))) > 0)
        n += (size_t)more;
    text[n] = '\0';
    note_worker(visitor, (pid_t)atoi(text));
    ck_assert_str_eq(strchr(text, ' '), SSL_session_reused(ssl) == 1 ? " r" : " .");
}

/* Shakes hands with the last session. Returns whether that was resumed; -1: the handshake fails. */
static int try_visit(struct visitor *visitor, in_port_t port)
{
    const struct timeval patience = { .tv_sec = TEST_PATIENCE_MS / 1000 };
    SSL *ssl = SSL_new(visitor->context);
    int fd = client_open(port), resumed = -1;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    SSL_set_fd(ssl, fd);
    if (visitor->session != NULL) { /* a copy, as a failure ends the session */
        SSL_SESSION *copy = SSL_SESSION_dup(visitor->session);

        SSL_set_session(ssl, copy);
        SSL_SESSION_free(copy);
    }
    ERR_clear_error();
    if (SSL_connect(ssl) == 1) {
        read_answer(visitor, ssl);
        resumed = SSL_session_reused(ssl);
        SSL_SESSION_free(visitor->session);
        visitor->session = SSL_get1_session(ssl);
    }
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    close(fd);
    return resumed;
}

static bool visit(struct visitor *visitor, in_port_t port)
{
    int resumed = try_visit(visitor, port);

    ck_assert_int_ne(resumed, -1);
    return resumed == 1;
}

/* Visits until so many workers, and 20 times at least; every session is resumed. */
static void check_resumed(struct visitor *visitor, in_port_t port, unsigned workers)
{
    visitor->worker_n = 0;
    for (unsigned i = 0; i < 20 || visitor->worker_n < workers; i++) {
        ck_assert_uint_lt(i, 1000);
        ck_assert(visit(visitor, port));
    }
}

static struct daemon *start(const char *directives)
{
    struct identity identity = certificates_make("tickets.example", IDENTITY_EC, NULL, 0, 7200);

    signal(SIGPIPE, SIG_IGN);
    certificates_write("cert.pem", identity.certificate, NULL);
    certificates_write_key("cert.key", identity.key, NULL);
    certificates_free(&identity);
    return daemon_start_new(1,
        "worker_processes 4; events { accept_mutex off; worker_connections 100; } stream { "
        "ssl_certificate %s/cert.pem; ssl_certificate_key %s/cert.key; %s "
        "server { listen 127.0.0.1:$0 ssl; return \"$pid $ssl_session_reused\"; } }",
        directory, directory, directives);
}

#define KEEPER "keeper process"
#define WORKER "worker process"

static void reload(struct daemon *daemon)
{
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
}

START_TEST(sessions_are_resumed_everywhere)
{
    struct daemon *daemon = start("");
    in_port_t port = daemon->ports[0];
    struct visitor visitor;
    pid_t new;

    open_visitor(&visitor, _i);
    ck_assert(!visit(&visitor, port));
    check_resumed(&visitor, port, WORKERS);
    reload(daemon);
    check_resumed(&visitor, port, WORKERS);
    reload(daemon);
    new = upgrade_start(daemon);
    check_resumed(&visitor, port, WORKERS);
    upgrade_roll_back(daemon, new);
    check_resumed(&visitor, port, WORKERS);
    new = upgrade_start(daemon);
    upgrade_complete(daemon, new);
    check_resumed(&visitor, port, WORKERS);
    reload(daemon);
    check_resumed(&visitor, port, WORKERS);
    close_visitor(&visitor);
    daemon_finish(daemon);
}
END_TEST

/* Keys outlive all keepers, as the master has their memory. */
START_TEST(keepers_may_die)
{
    struct daemon *daemon = start("");
    pid_t list[PROCESSES];
    struct visitor visitor;

    daemon_expects(daemon, "exited on signal 9");
    open_visitor(&visitor, _i);
    ck_assert(!visit(&visitor, daemon->ports[0]));
    for (unsigned i = 0; i < 3; i++) {
        WAIT_FOR(proc_titled(daemon->pid, KEEPER, list, PROCESSES) == WORKERS);
        for (unsigned j = 0; j < WORKERS; j++)
            ck_assert_int_eq(kill(list[j], SIGKILL), 0);
        visitor.worker_n = 0;
        while (visitor.worker_n < WORKERS) /* handshakes with the dead fail */
            ck_assert_int_ne(try_visit(&visitor, daemon->ports[0]), 0);
    }
    close_visitor(&visitor);
    daemon_finish(daemon);
}
END_TEST

START_TEST(without_tickets_nothing_is_resumed)
{
    struct daemon *daemon = start("ssl_session_tickets off;");
    struct visitor visitor;

    open_visitor(&visitor, _i);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(!visit(&visitor, daemon->ports[0]));
    close_visitor(&visitor);
    daemon_finish(daemon);
}
END_TEST

/* Keys of files last over a restart. */
START_TEST(keys_of_files_last)
{
    struct daemon *daemon;
    struct visitor visitor;
    char directives[256];
    FILE *file;

    snprintf(directives, sizeof(directives), "%s/ticket.key", directory);
    file = fopen(directives, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fprintf(file, "%080d", 7), 80);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(directives, sizeof(directives), "ssl_session_ticket_key %s/ticket.key;", directory);
    daemon = start(directives);
    open_visitor(&visitor, _i);
    ck_assert(!visit(&visitor, daemon->ports[0]));
    check_resumed(&visitor, daemon->ports[0], WORKERS);
    daemon_stop(daemon, SIGTERM);
    daemon_start(daemon);
    check_resumed(&visitor, daemon->ports[0], WORKERS);
    close_visitor(&visitor);
    daemon_finish(daemon);
}
END_TEST

/* ---- Who has the keys ---- */

/* Finds the descriptor of the memory among those of the process; -1: none. */
static int find_memory(pid_t pid)
{
    char path[64];
    struct dirent *entry;
    DIR *entries;
    int found = -1;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    entries = opendir(path);
    ck_assert_ptr_nonnull(entries);
    while ((entry = readdir(entries)) != NULL) {
        int fd = atoi(entry->d_name);

        snprintf(path, sizeof(path), "fd/%d", fd);
        if (strstr(proc_link(pid, path), MEMORY_NAME) != NULL)
            found = fd;
    }
    closedir(entries);
    return found;
}

/* Copies the newest key, by the master's descriptor. */
static struct ticket_key copy_newest_key(pid_t master)
{
    struct ticket_ring ring;
    struct ticket_key key;
    char path[64];
    void *memory;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)master, find_memory(master));
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL),
        F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    memory = mmap(NULL, TLS_TICKETS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    ticket_ring_init(&ring, memory, INT64_MAX);
    ck_assert_int_eq(ticket_ring_take(&ring, 0, &key), 0);
    munmap(memory, TLS_TICKETS_SIZE);
    close(fd);
    return key;
}

/* Neither a mapping nor a descriptor, nor the key's bytes. */
static void check_has_no_key(pid_t pid, const struct ticket_key *key)
{
    ck_assert_int_eq(proc_memory_maps(pid, MEMORY_NAME), 0);
    ck_assert_int_eq(proc_memory_has(pid, key->cipher, sizeof(key->cipher)), 0);
    ck_assert_int_eq(proc_memory_has(pid, key->mac, sizeof(key->mac)), 0);
}

static void check_workers(pid_t master, const struct visitor *visitor)
{
    const struct ticket_key key = copy_newest_key(master);
    pid_t list[PROCESSES];
    const uint8_t *ticket;
    size_t n;

    SSL_SESSION_get0_ticket(visitor->session, &ticket, &n);
    ck_assert_uint_gt(n, TICKET_NAME);
    ck_assert_mem_eq(ticket, key.name, TICKET_NAME); /* the key in use */
    ck_assert_uint_eq(proc_titled(master, WORKER, list, PROCESSES), WORKERS);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert_int_eq(find_memory(list[i]), -1);
        check_has_no_key(list[i], &key);
    }
    check_has_no_key(master, &key);
    ck_assert_uint_eq(proc_titled(master, KEEPER, list, PROCESSES), WORKERS);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert_int_ne(proc_memory_maps(list[i], MEMORY_NAME), 0);
        ck_assert_int_ne(proc_memory_has(list[i], key.cipher, sizeof(key.cipher)), 0);
    }
}

START_TEST(keepers_alone_have_keys)
{
    struct daemon *daemon = start("");
    struct visitor visitor;
    pid_t new;

    open_visitor(&visitor, TLS_1_3_LOOP);
    ck_assert(!visit(&visitor, daemon->ports[0]));
    check_resumed(&visitor, daemon->ports[0], WORKERS);
    check_workers(daemon->pid, &visitor);
    reload(daemon);
    check_resumed(&visitor, daemon->ports[0], WORKERS);
    check_workers(daemon->pid, &visitor);
    new = upgrade_start(daemon);
    upgrade_complete(daemon, new);
    check_resumed(&visitor, daemon->ports[0], WORKERS);
    check_workers(daemon->pid, &visitor);
    close_visitor(&visitor);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    directory_add(tcase);
    tcase_add_loop_test(tcase, sessions_are_resumed_everywhere, 0, VERSIONS);
    tcase_add_loop_test(tcase, keepers_may_die, 0, VERSIONS);
    tcase_add_loop_test(tcase, without_tickets_nothing_is_resumed, 0, VERSIONS);
    tcase_add_loop_test(tcase, keys_of_files_last, 0, VERSIONS);
    tcase_add_test(tcase, keepers_alone_have_keys);
}

TEST_MAIN("tickets", add_tests)
