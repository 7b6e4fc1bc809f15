/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard certificate --self-signed NAME ...`: checks the names, has the certificate made, and
 * writes the files. No configuration is read, and no daemon is asked. */
#include "cli/certificate_command.h"

#include "cli/certificate.h"
#include "cli/certificate_files.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAYS_DEFAULT 90

static int add_name(struct certificate_order *order, const char *text, struct log *log)
{
    const char *mistake = certificate_name_parse(&order->names[order->name_n], text);

    if (mistake == NULL && order->name_n == 0 && strlen(text) > CERTIFICATE_COMMON_NAME_MAX)
        mistake = "is too long to be the first: that is the common name, of 64 characters at most";
    if (mistake != NULL) {
        log_write(log, LEVEL_EMERG, 0, "invalid name: \"%s\" %s", text, mistake);
        return -1;
    }
    order->name_n++;
    return 0;
}

static int read_order(
    struct certificate_order *order, const struct cmdline *cmdline, struct log *log)
{
    *order = (struct certificate_order) {
        .days = cmdline->days != 0 ? (int)cmdline->days : DAYS_DEFAULT,
    };
    if ((cmdline->options & CMDLINE_SELF_SIGNED) == 0) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"certificate %s\", expected \"certificate %s\"", cmdline->argument,
            cmdline->word->argument);
        return -1;
    }
    if (cmdline->more_n >= CERTIFICATE_NAMES_MAX) {
        log_write(log, LEVEL_EMERG, 0, "more than %d names", CERTIFICATE_NAMES_MAX);
        return -1;
    }
    if (add_name(order, cmdline->argument, log) == -1)
        return -1;
    for (unsigned i = 0; i < cmdline->more_n; i++)
        if (add_name(order, cmdline->more[i], log) == -1)
            return -1;
    return 0;
}

/* Prints a directive, with a quoted path where the configuration's syntax needs quotes. */
static void print_directive(const char *name, const char *path)
{
    bool quoted = strpbrk(path, " \t\r\n;{\\") != NULL;

    printf("    %s %s", name, quoted ? "\"" : "");
    for (; *path != '\0'; path++)
        printf("%s%c", quoted && (*path == '"' || *path == '\\') ? "\\" : "", *path);
    printf("%s;\n", quoted ? "\"" : "");
}

static int show_certificate(const struct certificate *made, const struct certificate_paths *paths)
{
    printf("certificate: %s\nkey: %s\nSHA-256 fingerprint: %s\n\n", paths->certificate, paths->key,
        made->fingerprint);
    print_directive("ssl_certificate", paths->certificate);
    print_directive("ssl_certificate_key", paths->key);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_certificate(const struct cmdline *cmdline, struct log *log)
{
    struct certificate_order order;
    struct certificate_paths paths;
    struct certificate made;
    int code = EXIT_FAILURE;

    assert(cmdline->argument != NULL && cmdline->out != NULL);
    if (read_order(&order, cmdline, log) == -1)
        return EXIT_FAILURE;
    if (certificate_make(&order, &made, log) == 0 &&
        certificate_files_write(&made, cmdline->out, order.names[0].text, &paths, log) == 0)
        code = show_certificate(&made, &paths);
    if (made.key != NULL)
        explicit_bzero(made.key, strlen(made.key));
    free(made.key);
    free(made.certificate);
    return code;
}
