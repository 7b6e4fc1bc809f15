/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates that are replaced while the daemon serves, without a reload: the layouts of certbot
 * and Kubernetes, root's directories and a user, reloads, many clients, and refused pairs. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "support/certificates.h"
#include "support/directory.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY 86400L
#define STEADY_THREADS 4

static struct identity first, second;
static SSL_CTX *client_ctx;

static void make_all(void)
{
    first = certificates_make("it.example", IDENTITY_EC, NULL, 0, 90 * DAY);
    second = certificates_make("it.example", IDENTITY_EC, NULL, 0, 91 * DAY);
    client_ctx = SSL_CTX_new(TLS_client_method());
}

static void free_all(void)
{
    certificates_free(&first);
    certificates_free(&second);
    SSL_CTX_free(client_ctx);
}

/* Removes what an earlier test has left in the directory. */
static void empty_directory(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s/*", directory);
    ck_assert_int_eq(system(command), 0);
}

static const char *path_to(const char *name)
{
    static char paths[2][256];
    static unsigned next;
    char *path = paths[next++ % 2];

    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    return path;
}

static void make_directory(const char *name)
{
    ck_assert_int_eq(mkdir(path_to(name), 0700), 0);
}

static void move_file(const char *from, const char *name)
{
    ck_assert_int_eq(rename(path_to(from), path_to(name)), 0);
}

static void make_link(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, path_to(name)), 0);
}

static void write_pair(const struct identity *identity, const char *certificate, const char *key)
{
    certificates_write(certificate, identity->certificate, NULL);
    certificates_write_key(key, identity->key, NULL);
}

/* Shakes hands with a server of the name, unless NULL, and echoes; sets *seen on success, to NULL
 * for neither identity. */
static bool talk_to(in_port_t port, const char *name, const struct identity **seen)
{
    SSL *ssl = SSL_new(client_ctx);
    int fd = client_try(port);
    char text[16];
    bool talked = false;

    *seen = NULL;
    if (name != NULL)
        SSL_set_tlsext_host_name(ssl, name);
    if (fd != -1 && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1) {
        X509 *certificate = SSL_get0_peer_certificate(ssl);

        if (X509_cmp(certificate, first.certificate) == 0)
            *seen = &first;
        else if (X509_cmp(certificate, second.certificate) == 0)
            *seen = &second;
        talked = SSL_write(ssl, "echo", 4) == 4 && SSL_read(ssl, text, sizeof(text)) == 4 &&
                 SSL_shutdown(ssl) >= 0;
    }
    SSL_free(ssl);
    if (fd != -1)
        close(fd);
    return talked;
}

static bool talk(in_port_t port, const struct identity **seen)
{
    return talk_to(port, NULL, seen);
}

/* Whether each of many clients, who reach all workers, sees the identity. */
static bool serves(const struct daemon *daemon, const struct identity *identity)
{
    const struct identity *seen;

    for (int i = 0; i < 20; i++) {
        ck_assert(talk(daemon->ports[0], &seen));
        if (seen != identity)
            return false;
    }
    return true;
}

/* Starts a daemon with a pair of the directory. */
static struct daemon *start(const char *directives, const char *certificate, const char *key)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "%s\nevents { }\n"
        "stream {\n"
        "    server {\n"
        "        listen 127.0.0.1:$0 ssl;\n"
        "        echo;\n"
        "        ssl_certificate %s/%s;\n"
        "        ssl_certificate_key %s/%s;\n"
        "    }\n"
        "}\n",
        directives, directory, certificate, directory, key);
    daemon_start(daemon);
    if (strchr(certificate, '$') == NULL)
        WAIT_FOR(serves(daemon, &first));
    return daemon;
}

/* Waits until the second certificate is served, and told once. */
static void expect_swap(struct daemon *daemon)
{
    daemon_wait_log(daemon, "[notice] ");
    WAIT_FOR(serves(daemon, &second));
    daemon_wait_log(daemon, "\" was replaced, valid until 20");
    ck_assert_uint_eq(daemon_count_log(daemon, "was replaced"), 1);
}

static void finish(struct daemon *daemon)
{
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}

static const char *const processes[] = {
    "worker_processes 2;",
    "worker_processes 2; sandbox strict;",
    "master_process off;",
};

/* Directories are root's alone, and workers and keepers another user's. */
static void certbots_layout(const char *directives)
{
    char lines[128];
    struct daemon *daemon;

    snprintf(lines, sizeof(lines), "%s %s", geteuid() == 0 ? "user nobody;" : "", directives);
    make_directory("live");
    make_directory("archive");
    write_pair(&first, "archive/fullchain1.pem", "archive/privkey1.pem");
    make_link("../archive/fullchain1.pem", "live/fullchain.pem");
    make_link("../archive/privkey1.pem", "live/privkey.pem");
    daemon = start(lines, "live/fullchain.pem", "live/privkey.pem");
    write_pair(&second, "archive/fullchain2.pem", "archive/privkey2.pem");
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "live/privkey.pem" : "live/fullchain.pem";

        ck_assert_int_eq(unlink(path_to(name)), 0);
        make_link(i == 0 ? "../archive/privkey2.pem" : "../archive/fullchain2.pem", name);
    }
    expect_swap(daemon);
    finish(daemon);
}

START_TEST(certbot)
{
    certbots_layout(processes[_i]);
}
END_TEST

START_TEST(kubernetes)
{
    struct daemon *daemon;

    make_directory("secret");
    make_directory("secret/..1");
    write_pair(&first, "secret/..1/tls.crt", "secret/..1/tls.key");
    make_link("..1", "secret/..data");
    make_link("..data/tls.crt", "secret/tls.crt");
    make_link("..data/tls.key", "secret/tls.key");
    daemon = start(processes[_i], "secret/tls.crt", "secret/tls.key");
    make_directory("secret/..2");
    write_pair(&second, "secret/..2/tls.crt", "secret/..2/tls.key");
    make_link("..2", "secret/..data_tmp");
    move_file("secret/..data_tmp", "secret/..data");
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(unlink(path_to(i == 0 ? "secret/..1/tls.crt" : "secret/..1/tls.key")), 0);
    ck_assert_int_eq(rmdir(path_to("secret/..1")), 0);
    expect_swap(daemon);
    finish(daemon);
}
END_TEST

/* Fails unless a client that asks for the name is refused, with a line. */
static void expect_refusal(struct daemon *daemon, const char *name, const char *line)
{
    const struct identity *seen;

    daemon_expects(daemon, line);
    ck_assert(!talk_to(daemon->ports[0], name, &seen));
    daemon_wait_log(daemon, line);
}

/* Files by the names that clients ask for: read anew each time, by the user of keepers, and from
 * their directory alone. */
START_TEST(paths_with_variables)
{
    const bool as_root = geteuid() == 0;
    const struct identity *seen;
    struct daemon *daemon;
    char lines[128];

    snprintf(lines, sizeof(lines), "%s %s", as_root ? "user nobody;" : "", processes[_i]);
    make_directory("named");
    write_pair(&first, "named/one.crt", "named/one.key");
    write_pair(&second, "named/two.crt", "named/two.key");
    write_pair(&first, "out.crt", "named/out.key");
    make_link("../out.crt", "named/out.crt");
    for (int i = 0; i < 6; i++) {
        const char *const names[] = { "", "named", "named/one.key", "named/two.key",
            "named/out.key", "out.crt" };

        ck_assert_int_eq(chmod(path_to(names[i]), 0755), 0);
    }
    daemon = start(lines, "named/$ssl_server_name.crt", "named/$ssl_server_name.key");
    for (int i = 0; i < 2; i++) {
        ck_assert(talk_to(daemon->ports[0], "one", &seen));
        ck_assert_ptr_eq(seen, i == 0 ? &first : &second);
        ck_assert(talk_to(daemon->ports[0], "two", &seen));
        ck_assert_ptr_eq(seen, &second);
        write_pair(&second, "named/one.crt", "named/one.key");
    }
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-t", NULL), 0);
    expect_refusal(
        daemon, "none", "none.crt\": open() failed (2: No such file or directory) while");
    expect_refusal(daemon, "../named/one", "one.crt\": \"..\" is refused in a path with variables");
    if (_i == 1) /* the sandbox holds links, too */
        expect_refusal(daemon, "out", "named/out.crt\": open() failed (13: Permission denied)");
    if (as_root && _i < 2) {
        ck_assert_int_eq(chmod(path_to("named/two.key"), 0600), 0);
        expect_refusal(daemon, "two",
            "named/two.key\": open() failed (13: Permission denied): keeper processes open files");
    }
    finish(daemon);
}
END_TEST

START_TEST(a_bad_pair_is_refused_with_a_line)
{
    struct daemon *daemon;

    write_pair(&first, "it.crt", "it.key");
    daemon = start(processes[_i], "it.crt", "it.key");
    daemon_expects(daemon, "what was loaded before is used");
    certificates_write("it.crt", second.certificate, NULL);
    daemon_wait_log(daemon, "[error] ");
    daemon_wait_log(daemon, "it.key\" of \"");
    daemon_wait_log(daemon, "it.crt\": SSL_use_PrivateKey() failed (SSL: ");
    ck_assert(serves(daemon, &first));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-t", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "cannot load certificate key"));
    if (_i < 2) { /* with a master */
        ck_assert_int_eq(daemon_run(daemon, "certificates", "-c", "forkbeard.conf", NULL), 0);
        ck_assert_ptr_nonnull(strstr(daemon->out, " UTC  -                        "));
        ck_assert_ptr_nonnull(strstr(daemon->out, "it.crt ("));
        ck_assert_ptr_nonnull(strstr(daemon->out, "\n  refused at 20"));
    }
    certificates_write_key("it.key", second.key, NULL);
    expect_swap(daemon);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-t", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "[notice] certificate \""));
    ck_assert_ptr_nonnull(strstr(daemon->err, " is valid until 20"));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-tq", NULL), 0);
    ck_assert_ptr_null(strstr(daemon->err, "is valid until"));
    if (_i < 2) {
        ck_assert_int_eq(daemon_run(daemon, "certificates", "-c", "forkbeard.conf", NULL), 0);
        ck_assert_ptr_null(strstr(daemon->out, "refused at"));
        ck_assert_ptr_null(strstr(daemon->out, " UTC  -"));
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "cannot load certificate key"), 1);
    finish(daemon);
}
END_TEST

START_TEST(the_next_configuration_watches_too)
{
    struct daemon *daemon;

    write_pair(&first, "it.crt", "it.key");
    daemon = start("worker_processes 2;", "it.crt", "it.key");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "generation 2 serves");
    write_pair(&second, "it.crt", "it.key");
    expect_swap(daemon);
    finish(daemon);
}
END_TEST

static struct {
    in_port_t port;
    atomic_bool stops;
    atomic_uint served, failed;
} steady;

static void *run_steady(void *unused)
{
    const struct identity *seen;

    (void)unused;
    while (!atomic_load(&steady.stops))
        if (talk(steady.port, &seen) && seen != NULL)
            atomic_fetch_add(&steady.served, 1);
        else
            atomic_fetch_add(&steady.failed, 1);
    return NULL;
}

START_TEST(no_client_is_lost)
{
    pthread_t threads[STEADY_THREADS];
    struct daemon *daemon;
    unsigned served;

    write_pair(&first, "it.crt", "it.key");
    daemon = start("worker_processes 2;", "it.crt", "it.key");
    steady.port = daemon->ports[0];
    for (int i = 0; i < STEADY_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_steady, NULL), 0);
    for (unsigned i = 1; i <= 5; i++) {
        write_pair(i % 2 == 1 ? &second : &first, "new.crt", "new.key");
        move_file("new.key", "it.key");
        move_file("new.crt", "it.crt");
        WAIT_FOR(daemon_count_log(daemon, "was replaced") == i);
        served = atomic_load(&steady.served);
        WAIT_FOR(atomic_load(&steady.served) >= served + 100);
    }
    WAIT_FOR(serves(daemon, &second));
    atomic_store(&steady.stops, true);
    for (int i = 0; i < STEADY_THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(atomic_load(&steady.failed), 0);
    finish(daemon);
}
END_TEST

START_TEST(the_end_of_a_certificate_is_told)
{
    struct identity soon = certificates_make("it.example", IDENTITY_EC, NULL, 0, 3 * DAY + 7200);
    struct daemon *daemon;

    write_pair(&first, "it.crt", "it.key");
    daemon = start("worker_processes 2;", "it.crt", "it.key");
    ck_assert_uint_eq(daemon_count_log(daemon, "expire"), 0);
    ck_assert_int_eq(daemon_run(daemon, "status", "--check", "-c", "forkbeard.conf", NULL), 0);
    write_pair(&soon, "it.crt", "it.key");
    daemon_wait_log(daemon, "[warn] ");
    daemon_wait_log(daemon, " UTC, in 3 days");
    ck_assert_uint_eq(daemon_count_log(daemon, "expires on"), 1);
    WAIT_FOR(daemon_run(daemon, "status", "--check", "-c", "forkbeard.conf", NULL) == 1);
    ck_assert_ptr_nonnull(strstr(daemon->out, "/it.crt expires in 3.0 days"));
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "[warn] certificate \""));
    ck_assert_ptr_nonnull(strstr(daemon->err, " UTC, in 3 days\n"));
    finish(daemon);
    certificates_free(&soon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int n = sizeof(processes) / sizeof(processes[0]);

    resources_fixture(tcase);
    directory_add(tcase);
    tcase_add_unchecked_fixture(tcase, make_all, free_all);
    tcase_add_checked_fixture(tcase, empty_directory, NULL);
    tcase_add_loop_test(tcase, certbot, 0, n);
    tcase_add_loop_test(tcase, kubernetes, 1, n);
    tcase_add_loop_test(tcase, paths_with_variables, 0, n);
    tcase_add_loop_test(tcase, a_bad_pair_is_refused_with_a_line, 0, 1);
    tcase_add_test(tcase, the_next_configuration_watches_too);
    tcase_add_test(tcase, no_client_is_lost);
    tcase_add_test(tcase, the_end_of_a_certificate_is_told);
}

TEST_MAIN("certificates", add_tests)
