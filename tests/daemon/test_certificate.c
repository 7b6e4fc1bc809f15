/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard certificate`: OpenSSL's own program reads, verifies and serves the certificate, and
 * each run makes a new key. */
#include "daemon/daemon.h"
#include "daemon/resources.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Runs a line of the shell in the directory of the test; returns the exit code, and all output. */
static int shell(const struct daemon *daemon, const char *line, const char **output)
{
    static char text[16384];
    char command[512];
    FILE *pipe;
    int status;

    snprintf(command, sizeof(command), "cd %s && { %s; } 2>&1 </dev/null", daemon->directory, line);
    pipe = popen(command, "re");
    ck_assert_ptr_nonnull(pipe);
    text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
    status = pclose(pipe);
    ck_assert(WIFEXITED(status));
    *output = text;
    return WEXITSTATUS(status);
}

static bool has_openssl(const struct daemon *daemon)
{
    const char *output;

    if (shell(daemon, "command -v openssl", &output) == 0)
        return true;
    fprintf(stderr, "openssl is not installed: certificates are not verified\n");
    return false;
}

/* Runs a line of the shell, which succeeds and writes the text, without regard to other output. */
static void expect_output(const struct daemon *daemon, const char *line, const char *expected)
{
    const char *output;
    int code = shell(daemon, line, &output);

    ck_assert_msg(code == 0 && strstr(output, expected) != NULL, "%s: %d: %s", line, code, output);
}

static void check_mode(const struct daemon *daemon, const char *name, mode_t mode)
{
    struct stat st;

    ck_assert_int_eq(lstat(daemon_path(daemon, name), &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | mode);
}

/* Makes www.example.com.crt, for three more names. */
static struct daemon *make_certificate(unsigned port_n, const char *days)
{
    struct daemon *daemon = daemon_create(port_n);
    int code = daemon_run(daemon, "certificate", "--self-signed", "--days", days, "www.example.com",
        "*.example.com", "127.0.0.1", "::1", NULL);

    daemon_owns(daemon, "www.example.com.crt");
    daemon_owns(daemon, "www.example.com.key");
    ck_assert_msg(code == 0, "%s", daemon->err);
    ck_assert_str_eq(daemon->err, "");
    return daemon;
}

START_TEST(paths_and_directives_are_printed)
{
    struct daemon *daemon = make_certificate(0, "90");
    char expected[1024];
    const char *at;

    check_mode(daemon, "www.example.com.crt", 0644);
    check_mode(daemon, "www.example.com.key", 0600);
    snprintf(expected, sizeof(expected),
        "certificate: %s/www.example.com.crt\nkey: %s/www.example.com.key\nSHA-256 fingerprint: ",
        daemon->directory, daemon->directory);
    ck_assert_int_eq(strncmp(daemon->out, expected, strlen(expected)), 0);
    at = daemon->out + strlen(expected);
    ck_assert_uint_eq(strspn(at, "0123456789ABCDEF:"), 32 * 3 - 1);
    snprintf(expected, sizeof(expected),
        "\n\n    ssl_certificate %s/www.example.com.crt;\n"
        "    ssl_certificate_key %s/www.example.com.key;\n",
        daemon->directory, daemon->directory);
    ck_assert_str_eq(at + 32 * 3 - 1, expected);
    daemon_finish(daemon);
}
END_TEST

#define SHOWN "openssl x509 -in www.example.com.crt -noout "

static const struct {
    const char *line, *expected;
} shown[] = {
    { "openssl verify -x509_strict -CAfile www.example.com.crt www.example.com.crt", ": OK\n" },
    { "openssl pkey -in www.example.com.key -noout -text", "ASN1 OID: prime256v1" },
    { SHOWN "-text", "Version: 3 (0x2)" },
    { SHOWN "-text", "Signature Algorithm: ecdsa-with-SHA256" },
    { SHOWN "-subject -issuer -nameopt RFC2253",
        "subject=CN=www.example.com\nissuer=CN=www.example.com\n" },
    { SHOWN "-ext subjectAltName", "DNS:www.example.com, DNS:*.example.com, "
                                   "IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1\n" },
    { SHOWN "-ext basicConstraints", "critical\n    CA:FALSE\n" },
    { SHOWN "-ext keyUsage", "critical\n    Digital Signature\n" },
    { SHOWN "-ext extendedKeyUsage", "\n    TLS Web Server Authentication\n" },
    { SHOWN "-ext subjectKeyIdentifier", "Subject Key Identifier: \n" },
    /* two days less a few seconds, and seven more seconds than two days */
    { SHOWN "-checkend 172000", "Certificate will not expire\n" },
    { SHOWN "-checkend 172807 | grep will", "Certificate will expire\n" },
    { "test $(($(date +%s) - $(date +%s -d \"$(" SHOWN "-startdate | cut -d = -f 2)\"))) -ge 3600",
        "" },
    { "test $(" SHOWN "-serial | wc -c) -gt 30", "" },
};

START_TEST(openssl_reads_the_certificate)
{
    struct daemon *daemon = make_certificate(0, "2");

    if (has_openssl(daemon))
        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
            expect_output(daemon, shown[i].line, shown[i].expected);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_fingerprint_is_right)
{
    struct daemon *daemon = make_certificate(0, "90");
    const char *printed = strstr(daemon->out, "fingerprint: "), *output;

    ck_assert_ptr_nonnull(printed);
    printed += strlen("fingerprint: ");
    if (has_openssl(daemon)) {
        ck_assert_int_eq(shell(daemon, SHOWN "-fingerprint -sha256", &output), 0);
        output = strchr(output, '=');
        ck_assert_ptr_nonnull(output);
        ck_assert_int_eq(strncmp(printed, output + 1, strcspn(printed, "\n")), 0);
    }
    daemon_finish(daemon);
}
END_TEST

/* The server writes ACCEPT when ready, and ends after the client. */
START_TEST(openssl_serves_the_certificate)
{
    struct daemon *daemon = make_certificate(1, "90");
    char line[256], ready[64];
    FILE *server;

    if (has_openssl(daemon)) {
        snprintf(line, sizeof(line),
            "cd %s && exec timeout 60 openssl s_server -accept 127.0.0.1:%u -rev -naccept 1"
            " -cert www.example.com.crt -key www.example.com.key 2>&1 </dev/null",
            daemon->directory, daemon->ports[0]);
        server = popen(line, "re");
        ck_assert_ptr_nonnull(server);
        do
            ck_assert_ptr_nonnull(fgets(ready, sizeof(ready), server));
        while (strcmp(ready, "ACCEPT\n") != 0);
        snprintf(line, sizeof(line),
            "timeout 60 openssl s_client -connect 127.0.0.1:%u -CAfile www.example.com.crt"
            " -verify_return_error -verify_hostname any.example.com",
            daemon->ports[0]);
        expect_output(daemon, line, "Verify return code: 0 (ok)");
        while (fgets(ready, sizeof(ready), server) != NULL)
            ;
        ck_assert_int_eq(pclose(server), 0);
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(each_run_makes_another_key)
{
    struct daemon *daemon = make_certificate(0, "90");
    const char *output;
    char *first;

    first = strdup(daemon_text(daemon, "www.example.com.key"));
    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(
        daemon_run(daemon, "certificate", "--self-signed", "www.example.com", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, ".key\" exists already, and is left as it is\n"));
    ck_assert_str_eq(daemon->out, "");
    ck_assert_str_eq(daemon_text(daemon, "www.example.com.key"), first);

    ck_assert_int_eq(mkdir(daemon_path(daemon, "a b"), 0700), 0);
    ck_assert_int_eq(daemon_run(daemon, "certificate", "--self-signed", "www.example.com", "--out",
                         "a b/", NULL),
        0);
    ck_assert_msg(strstr(daemon->out, "    ssl_certificate \"/") != NULL &&
                      strstr(daemon->out, "/a b/www.example.com.crt\";\n") != NULL,
        "%s", daemon->out);
    ck_assert_str_ne(daemon_text(daemon, "a b/www.example.com.key"), first);
    free(first);
    ck_assert_int_eq(shell(daemon, "rm -r 'a b'", &output), 0);
    daemon_finish(daemon);
}
END_TEST

static const struct {
    const char *name, *more, *error;
} mistakes[] = {
    { "localhost", "300.1.1.1", "\"300.1.1.1\" is no IPv4 address, but ends as if it were\n" },
    { "a.234567890.234567890.234567890.234567890.234567890.234567890.xyz", "b",
        "\" is too long to be the first: that is the common name, of 64 characters at most\n" },
};

START_TEST(a_mistake_leaves_no_file)
{
    struct daemon *daemon = daemon_create(0);

    ck_assert_int_eq(daemon_run(daemon, "certificate", "--self-signed", mistakes[_i].name,
                         mistakes[_i].more, NULL),
        1);
    ck_assert_msg(strstr(daemon->err, mistakes[_i].error) != NULL, "%s", daemon->err);
    ck_assert_ptr_eq(strchr(daemon->err, '\n'), strrchr(daemon->err, '\n'));
    ck_assert_str_eq(daemon->out, "");
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_build_without_openssl_says_so)
{
    struct daemon *daemon = daemon_create(0);

    ck_assert_int_eq(daemon_run(daemon, "certificate", "--self-signed", "localhost", NULL), 1);
    ck_assert_str_eq(daemon->err, "forkbeard: [emerg] \"certificate\" needs OpenSSL, which this "
                                  "build lacks: see forkbeard -V\n");
    ck_assert_str_eq(daemon->out, "");
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_mistake_leaves_no_file, 0, sizeof(mistakes) / sizeof(mistakes[0]));
    if (!HAVE_OPENSSL) {
        tcase_add_test(tcase, a_build_without_openssl_says_so);
        return;
    }
    tcase_add_test(tcase, paths_and_directives_are_printed);
    tcase_add_test(tcase, openssl_reads_the_certificate);
    tcase_add_test(tcase, the_fingerprint_is_right);
    tcase_add_test(tcase, openssl_serves_the_certificate);
    tcase_add_test(tcase, each_run_makes_another_key);
}

TEST_MAIN("certificate", add_tests)
