/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a test's configuration: puts the directives that the test has given into a file, and has
 * the daemon's own parser read it. Reports name the test's parts instead of paths. */
#include "kit/kit.h"

#include "features/features.h"
#include "os/files.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS 512

/* A part that the test has written: a file of the test's, which the whole file includes by its
 * path. */
struct part {
    const char *name; /* in reports */
    int fd;           /* -1: the test has not written it */
    char path[KIT_FILE_PATH];
    char line[KIT_FILE_PATH + 16]; /* the `include` */
};

enum { MAIN, STREAM, SERVER, PARTS = SERVER + KIT_SERVERS_MAX };

static void open_part(struct part *part, const char *name, const char *text)
{
    *part = (struct part) { .name = name, .fd = -1 };
    if (text == NULL)
        return;
    part->fd = kit_file_create(text, part->path);
    snprintf(part->line, sizeof(part->line), "include \"%s\";", part->path);
}

/* A `user` line for root, whose configuration needs one. The test never changes its user. */
static const char *user_line(char *line, size_t size)
{
    const struct passwd *user = geteuid() == 0 ? getpwuid(0) : NULL;

    snprintf(line, size, "user %s;", user != NULL ? user->pw_name : "");
    return user != NULL ? line : "";
}

static char *compose_servers(const struct part *parts, const fb_test_options *options)
{
    const char *parameters = options->listen != NULL ? options->listen : "";
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL)
        kit_misused("no memory for the configuration");
    for (unsigned i = 0; i < kit_options_servers(options); i++)
        fprintf(file, "    server {\n        listen 192.0.2.80:%u %s;\n        %s\n    }\n",
            KIT_FIRST_PORT + i, parameters, parts[SERVER + i].line);
    if (fclose(file) != 0)
        kit_misused("no memory for the configuration");
    return text;
}

/* The text of the file around the parts, which the caller frees. */
static char *compose_file(const struct part *parts, const fb_test_options *options)
{
    char user[64], *servers = compose_servers(parts, options), *text;
    char *access = kit_access_directives(options);
    int n = asprintf(&text,
        "daemon off;\nmaster_process off;\n%s\n%s\n"
        "events {\n    worker_connections %u;\n}\n"
        "stream {\n    %s%s\n%s}\n",
        user_line(user, sizeof(user)), parts[MAIN].line,
        options->worker_connections > 0 ? options->worker_connections : CONNECTIONS, access,
        parts[STREAM].line, servers);

    if (n == -1)
        kit_misused("no memory for the configuration");
    free(access);
    free(servers);
    return text;
}

/* Prints the report with the names of the parts instead of their paths. */
static void show_report(const char *report, const struct part *parts)
{
    while (*report != '\0') {
        const struct part *part = parts;

        while (part < parts + PARTS &&
               (part->fd == -1 || strncmp(report, part->path, strlen(part->path)) != 0))
            part++;
        if (part < parts + PARTS) {
            fputs(part->name, stderr);
            report += strlen(part->path);
        } else {
            fputc(*report++, stderr);
        }
    }
}

static struct cycle *load_file(
    const fb_protocol *const *protocols, const char *path, const char *label, char **report)
{
    struct log_target target;
    struct log log;
    struct cycle_options options = {
        .conf = path,
        .pid = "/nonexistent/pid",
        .error_log = "stderr",
        .module_directory = "/nonexistent",
        .protocols = protocols,
        .features = features_all,
    };
    char log_path[KIT_FILE_PATH];
    struct cycle *cycle;

    log_init_plain(&log, &target, label);
    target.fd = kit_file_create("", log_path);
    cycle = cycle_load(&options, &log, target.fd);
    *report = kit_file_read(target.fd);
    os_temporary_close(target.fd, log_path);
    return cycle;
}

struct cycle *kit_conf_load(
    const fb_protocol *const *protocols, const fb_test_options *options, const char *label)
{
    struct part parts[PARTS];
    struct cycle *cycle;
    char path[KIT_FILE_PATH], *text, *report;
    int fd;

    assert(options->server != NULL);
    open_part(&parts[MAIN], "the test's main directives", options->main);
    open_part(&parts[STREAM], "the test's stream directives", options->stream);
    open_part(&parts[SERVER], "the test's server directives", options->server);
    for (unsigned i = 1; i < KIT_SERVERS_MAX; i++)
        open_part(&parts[SERVER + i], "the test's directives of a further server",
            i < kit_options_servers(options) ? options->servers[i - 1] : NULL);
    text = compose_file(parts, options);
    fd = kit_file_create(text, path);
    cycle = load_file(protocols, path, label, &report);
    show_report(report, parts);
    free(report);
    free(text);
    os_temporary_close(fd, path);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].fd != -1)
            os_temporary_close(parts[i].fd, parts[i].path);
    return cycle;
}
