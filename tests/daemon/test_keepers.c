/* SPDX-License-Identifier: BSD-2-Clause */
/* Keepers of the real daemon: clients of libssl shake hands with certificates that only the master
 * may read, keepers die under them, and no worker has a key. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/proc_memory.h"
#include "daemon/tls_client.h"
#include "daemon/upgrade.h"
#include "support/certificates.h"
#include "support/directory.h"
#include "support/test.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES 16

static struct identity identity;

static bool is_served(in_port_t port)
{
    struct tls_client client;

    if (!tls_client_begin(&client, port))
        return false;
    tls_client_echo(&client, "is it served?");
    tls_client_end(&client);
    return true;
}

/* Makes a certificate, and its files cert.pem and cert.key. */
static void make_certificate(const char *name)
{
    if (identity.certificate != NULL)
        certificates_free(&identity);
    identity = certificates_make(name, IDENTITY_EC, NULL, 0, 7200);
    certificates_write("cert.pem", identity.certificate, NULL);
    certificates_write_key("cert.key", identity.key, NULL);
}

static struct daemon *start(const char *main)
{
    signal(SIGPIPE, SIG_IGN);
    make_certificate("first.example");
    return daemon_start_new(1,
        "worker_processes 2; %s events { worker_connections 100; } stream { "
        "ssl_certificate %s/cert.pem; ssl_certificate_key %s/cert.key; "
        "server { listen 127.0.0.1:$0 ssl; echo; } }",
        main, directory, directory);
}

static void finish(struct daemon *daemon)
{
    daemon_finish(daemon);
    certificates_free(&identity);
}

#define KEEPER "keeper process"
#define WORKER "worker process"

/* A process of clients, of which each shakes hands when the last has ended. */
struct storm {
    pid_t pid;
    atomic_uint *done; /* handshakes so far, in shared memory */
};

static void start_storm(struct storm *storm, in_port_t port)
{
    storm->done =
        mmap(NULL, sizeof(*storm->done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(storm->done, MAP_FAILED);
    storm->pid = fork();
    ck_assert_int_ne(storm->pid, -1);
    while (storm->pid == 0) {
        struct tls_client client;

        if (tls_client_begin(&client, port))
            atomic_fetch_add(storm->done, 1);
        tls_client_end(&client);
    }
}

static void stop_storm(struct storm *storm)
{
    ck_assert_int_eq(kill(storm->pid, SIGKILL), 0);
    ck_assert_int_eq(proc_wait(storm->pid), 128 + SIGKILL);
    munmap(storm->done, sizeof(*storm->done));
}

/* Handshakes of a storm between the deaths of two keepers. */
#define HANDSHAKES_A_DEATH 10

START_TEST(keepers_may_die_under_sessions)
{
    struct daemon *daemon = start("");
    struct tls_client clients[8];
    struct storm storm;
    pid_t list[PROCESSES];

    daemon_expects(daemon, "exited on signal 9");
    start_storm(&storm, daemon->ports[0]);
    for (unsigned i = 0; i < 8; i++)
        ck_assert(tls_client_begin(&clients[i], daemon->ports[0]));
    for (unsigned i = 0, n = test_trials(100); i < n; i++) {
        unsigned done = atomic_load(storm.done);

        WAIT_FOR(proc_titled(daemon->pid, KEEPER, list, PROCESSES) == 2);
        WAIT_FOR(atomic_load(storm.done) >= done + HANDSHAKES_A_DEATH);
        ck_assert_int_eq(kill(list[i % 2], SIGKILL), 0);
        for (unsigned j = 0; j < 8; j++)
            tls_client_echo(&clients[j], "an open session loses nothing");
        WAIT_FOR(is_served(daemon->ports[0]));
    }
    stop_storm(&storm);
    for (unsigned i = 0; i < 8; i++) {
        tls_client_echo(&clients[i], "nor later");
        tls_client_end(&clients[i]);
    }
    WAIT_FOR(proc_titled(daemon->pid, WORKER, list, PROCESSES) == 2);
    finish(daemon);
}
END_TEST

START_TEST(a_replaced_worker_has_its_keeper)
{
    struct daemon *daemon = start("");
    pid_t list[PROCESSES];

    daemon_expects(daemon, "exited on signal 9");
    for (unsigned i = 0; i < 4; i++) {
        WAIT_FOR(proc_titled(daemon->pid, WORKER, list, PROCESSES) == 2);
        ck_assert_int_eq(kill(list[0], SIGKILL), 0);
        ck_assert_int_eq(kill(list[1], SIGKILL), 0);
        WAIT_FOR(is_served(daemon->ports[0]));
        ck_assert_uint_eq(proc_titled(daemon->pid, KEEPER, list, PROCESSES), 2);
    }
    finish(daemon);
}
END_TEST

/* Sends the ClientHello of a client of libssl. */
static void send_hello(int fd)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *out = BIO_new(BIO_s_mem());
    char *hello;
    long n;

    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    ck_assert_int_eq(SSL_connect(ssl), -1);
    n = BIO_get_mem_data(out, &hello);
    ck_assert_int_eq(send(fd, hello, (size_t)n, 0), n);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

/* Connects to a worker beside the given worker. */
static int open_elsewhere(const struct daemon *daemon, pid_t worker)
{
    for (int64_t until = deadline_ms(); now_ms() < until;) {
        int fd = client_open(daemon->ports[0]);

        if (proc_server_of(daemon->pid, fd) != worker)
            return fd;
        close(fd);
    }
    ck_abort_msg("the other worker accepts no client");
    return -1;
}

START_TEST(a_flood_holds_up_its_own_worker_alone)
{
    struct daemon *daemon;
    struct tls_client client;
    unsigned long flooded;
    pid_t worker;
    int flooder;

    signal(SIGPIPE, SIG_IGN);
    make_certificate("flood.example");
    daemon = daemon_start_new(2,
        "worker_processes 2; load_module " MODULES_PATH "/flooder.so; "
        "events { worker_connections 100; } stream { "
        "ssl_certificate %s/cert.pem; ssl_certificate_key %s/cert.key; "
        "server { listen 127.0.0.1:$0 ssl; echo; } server { listen 127.0.0.1:$1; flooder; } }",
        directory, directory);
    flooder = client_open(daemon->ports[1]);
    send_hello(flooder);
    worker = proc_server_of(daemon->pid, flooder);
    client_send(flooder, "n");
    flooded = strtoul(client_read_line(flooder), NULL, 10);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(tls_client_begin_on(&client, open_elsewhere(daemon, worker)));
        tls_client_echo(&client, "beside a flood");
        tls_client_end(&client);
    }
    client_send(flooder, "n");
    ck_assert_uint_gt(strtoul(client_read_line(flooder), NULL, 10), flooded);
    ck_assert_int_eq(proc_server_of(daemon->pid, flooder), worker);
    close(flooder);
    ck_assert(is_served(daemon->ports[0]));
    finish(daemon);
}
END_TEST

START_TEST(no_worker_has_a_key)
{
    struct daemon *daemon = start("");
    pid_t list[PROCESSES];
    BIGNUM *secret = NULL;
    uint8_t big[32], little[32];

    ck_assert_int_eq(EVP_PKEY_get_bn_param(identity.key, "priv", &secret), 1);
    ck_assert_int_eq(BN_bn2binpad(secret, big, 32), 32);
    ck_assert_int_eq(BN_bn2lebinpad(secret, little, 32), 32);
    BN_free(secret);
    for (unsigned i = 0; i < 20; i++)
        ck_assert(is_served(daemon->ports[0]));
    ck_assert_uint_eq(proc_titled(daemon->pid, WORKER, list, PROCESSES), 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_ne(proc_memory_has(list[i], big, 32), 1);
        ck_assert_int_ne(proc_memory_has(list[i], little, 32), 1);
        ck_assert_int_eq(proc_memory_maps(list[i], "libssl"), 0);
    }
    ck_assert_int_ne(proc_memory_has(daemon->pid, big, 32), 1);
    ck_assert_int_ne(proc_memory_has(daemon->pid, little, 32), 1);
    ck_assert_int_eq(proc_memory_maps(daemon->pid, "libssl"), 0);
    /* the search finds what is there; without rights a keeper cannot be looked into */
    ck_assert_uint_eq(proc_titled(daemon->pid, KEEPER, list, PROCESSES), 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(
            proc_memory_has(list[i], little, 32) != 0 || proc_memory_has(list[i], big, 32) != 0);
        ck_assert_int_ne(proc_memory_maps(list[i], "libssl"), 0);
    }
    finish(daemon);
}
END_TEST

/* Whether the certificate that clients get is of the identity. */
static bool has_certificate(in_port_t port)
{
    struct tls_client client;
    X509 *shown;
    bool same;

    ck_assert(tls_client_begin(&client, port));
    shown = SSL_get1_peer_certificate(client.ssl);
    same = X509_cmp(shown, identity.certificate) == 0;
    X509_free(shown);
    tls_client_end(&client);
    return same;
}

START_TEST(a_reload_and_an_upgrade_take_new_files)
{
    struct daemon *daemon = start("");
    struct tls_client client;
    pid_t list[PROCESSES], new;

    ck_assert(tls_client_begin(&client, daemon->ports[0]));
    ck_assert(has_certificate(daemon->ports[0]));
    make_certificate("second.example");
    ck_assert(!has_certificate(daemon->ports[0]));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    ck_assert(has_certificate(daemon->ports[0]));
    tls_client_echo(&client, "a session of the first");
    WAIT_FOR(
        proc_titled(daemon->pid, KEEPER, list, PROCESSES) == 3); /* one drains with its worker */
    tls_client_end(&client);
    WAIT_FOR(proc_titled(daemon->pid, KEEPER, list, PROCESSES) == 2);
    new = upgrade_start(daemon);
    ck_assert(has_certificate(daemon->ports[0]));
    upgrade_roll_back(daemon, new);
    ck_assert(has_certificate(daemon->ports[0]));
    finish(daemon);
}
END_TEST

START_TEST(a_missing_file_fails_the_reload)
{
    struct daemon *daemon = start("");
    char path[128];

    daemon_expects(daemon, "cert.key");
    snprintf(path, sizeof(path), "%s/cert.key", directory);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_ne(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "cert.key"));
    ck_assert(is_served(daemon->ports[0]));
    certificates_write_key("cert.key", identity.key, NULL);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    finish(daemon);
}
END_TEST

/* Writes servers of more pairs than a start tries; the last one, the default, has late.pem. */
static void write_servers(in_port_t port)
{
    char path[128];
    FILE *to;

    snprintf(path, sizeof(path), "%s/servers.conf", directory);
    to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    for (unsigned i = 0; i < 64; i++) {
        fprintf(to,
            "server { listen 127.0.0.1:%u ssl; server_name n%u; echo; "
            "ssl_certificate %s/%u.pem; ssl_certificate_key %s/cert.key; }\n",
            port, i, directory, i, directory);
        snprintf(path, sizeof(path), "%s/%u.pem", directory, i);
        ck_assert_int_eq(symlink("cert.pem", path), 0);
    }
    fprintf(to,
        "server { listen 127.0.0.1:%u ssl default_server; echo; "
        "ssl_certificate %s/late.pem; ssl_certificate_key %s/late.key; }\n",
        port, directory, directory);
    ck_assert_int_eq(fclose(to), 0);
}

START_TEST(pairs_beyond_the_first_are_tried_by_a_keeper)
{
    struct identity late = certificates_make("late.example", IDENTITY_EC, NULL, 0, 7200);
    struct daemon *daemon = daemon_create(1);
    in_port_t port = daemon->ports[0];

    signal(SIGPIPE, SIG_IGN);
    make_certificate("first.example");
    write_servers(port);
    certificates_write("late.pem", late.certificate, NULL);
    certificates_write_key("late.key", identity.key, NULL);
    daemon_configure(daemon,
        "worker_processes 1; events { worker_connections 100; } stream { include %s/servers.conf; "
        "}",
        directory);
    daemon_expects(daemon, "cannot load certificate key");
    daemon_start(daemon);
    ck_assert(!is_served(port));
    daemon_wait_log(daemon, "until the file changes nothing is served with it");
    certificates_write_key("late.key", late.key, NULL);
    WAIT_FOR(is_served(port));
    certificates_write_key("late.key", identity.key, NULL);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-t", NULL), 1);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    daemon_wait_log(daemon, "what was loaded before is used");
    ck_assert(is_served(port));
    certificates_free(&late);
    finish(daemon);
}
END_TEST

/* As certbot has them: links out of the directory, to files of root alone. */
START_TEST(files_of_root_alone_serve)
{
    char path[128], link[128];
    struct daemon *daemon;

    if (geteuid() != 0)
        return;
    make_certificate("links.example");
    snprintf(link, sizeof(link), "%s/archive", directory);
    ck_assert_int_eq(mkdir(link, 0700), 0);
    daemon = start("user nobody;");
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/cert.%s", directory, i == 0 ? "pem" : "key");
        snprintf(link, sizeof(link), "%s/archive/cert1.%s", directory, i == 0 ? "pem" : "key");
        ck_assert_int_eq(chmod(path, 0600), 0);
        ck_assert_int_eq(rename(path, link), 0);
        ck_assert_int_eq(symlink(strstr(link, "archive/"), path), 0);
    }
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    ck_assert(has_certificate(daemon->ports[0]));
    finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    directory_add(tcase);
    tcase_add_test(tcase, keepers_may_die_under_sessions);
    tcase_add_test(tcase, a_replaced_worker_has_its_keeper);
    tcase_add_test(tcase, a_flood_holds_up_its_own_worker_alone);
    tcase_add_test(tcase, no_worker_has_a_key);
    tcase_add_test(tcase, a_reload_and_an_upgrade_take_new_files);
    tcase_add_test(tcase, a_missing_file_fails_the_reload);
    tcase_add_test(tcase, pairs_beyond_the_first_are_tried_by_a_keeper);
    tcase_add_test(tcase, files_of_root_alone_serve);
}

TEST_MAIN("keepers", add_tests)
