/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a test, copied because the caller may have another version of the header; and its
 * configuration: a file of the options' directives, read by the daemon's own parser. Reports name
 * the test's parts instead of paths. */
#include "kit/kit.h"

#include "features/features.h"
#include "os/files.h"
#include "tls/engine.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS 512

/* ---- Options ---- */

unsigned kit_options_servers(const fb_test_options *options)
{
    unsigned n = 1;

    while (options->servers != NULL && options->servers[n - 1] != NULL)
        n++;
    return n;
}

fb_test_options kit_options(const fb_test_options *options)
{
    fb_test_options own = { .size = sizeof(own) };

    memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
    if (own.server == NULL)
        kit_misused("the options have no server directives");
    if (own.workers > KIT_WORKERS_MAX)
        kit_misused("the options have more than %d workers", KIT_WORKERS_MAX);
    if (kit_options_servers(&own) > KIT_SERVERS_MAX)
        kit_misused("the options have more than %d servers", KIT_SERVERS_MAX);
    return own;
}

static const char *keep_text(struct arena *arena, const char *text)
{
    const char *copy = text != NULL ? arena_strdup(arena, text) : NULL;

    if (text != NULL && copy == NULL)
        kit_misused("no memory for the options");
    return copy;
}

void kit_options_keep(fb_test_options *options, struct arena *arena)
{
    unsigned n = kit_options_servers(options);
    const char **servers = arena_alloc(arena, n * sizeof(*servers));

    if (servers == NULL)
        kit_misused("no memory for the options");
    for (unsigned i = 0; i + 1 < n; i++)
        servers[i] = keep_text(arena, options->servers[i]);
    options->servers = servers;
    options->server = keep_text(arena, options->server);
    options->stream = keep_text(arena, options->stream);
    options->main = keep_text(arena, options->main);
    options->listen = keep_text(arena, options->listen);
    options->excuse = keep_text(arena, options->excuse);
    options->log_format = keep_text(arena, options->log_format);
}

/* ---- The configuration ---- */

/* A part written by the test: a file of the test's, included in the whole file by path. */
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

/* A `user` line for root's configuration, where a user is required. The test never changes user. */
static const char *user_line(char *line, size_t size)
{
    const struct passwd *user = geteuid() == 0 ? getpwuid(0) : NULL;

    snprintf(line, size, "user %s;", user != NULL ? user->pw_name : "");
    return user != NULL ? line : "";
}

/* Quotes the text for the configuration. */
static void put_quoted(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void put_stream(FILE *file, const struct part *parts, const fb_test_options *options)
{
    const char *parameters = options->listen != NULL ? options->listen : "";

    fputs("stream {\n", file);
    if (options->log_format != NULL) {
        fputs("    log_format forkbeard_test ", file);
        put_quoted(file, options->log_format);
        fputs(";\n    access_log " KIT_ACCESS_PATH " forkbeard_test;\n", file);
    }
    fprintf(file, "    %s\n", parts[STREAM].line);
    for (unsigned i = 0; i < kit_options_servers(options); i++)
        fprintf(file, "    server {\n        listen 192.0.2.80:%u %s;\n        %s\n    }\n",
            KIT_FIRST_PORT + i, parameters, parts[SERVER + i].line);
    fputs("}\n", file);
}

/* The text of the file around the parts, which the caller frees. */
static char *compose_file(const struct part *parts, const fb_test_options *options)
{
    char user[64], *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL)
        kit_misused("no memory for the configuration");
    fprintf(file,
        "daemon off;\nmaster_process off;\n%s\n%s\n"
        "events {\n    worker_connections %u;\n}\n",
        user_line(user, sizeof(user)), parts[MAIN].line,
        options->worker_connections > 0 ? options->worker_connections : CONNECTIONS);
    put_stream(file, parts, options);
    if (fclose(file) != 0)
        kit_misused("no memory for the configuration");
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
        .engine = &tls_engine_plain,
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
