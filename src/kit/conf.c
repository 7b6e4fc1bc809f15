/* SPDX-License-Identifier: BSD-2-Clause */
/* A test's configuration: the directives that it is given, in a file as the daemon reads it. */
#include "kit/kit.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS 512

/* A part that the test has written, which is included by the path of its descriptor and shown by its
 * name. */
struct part {
    const char *name;
    int fd;
    char path[32];
    char line[48]; /* that includes it */
};

enum { MAIN, STREAM, SERVER, PARTS };

static void open_part(struct part *part, const char *name, const char *text)
{
    *part = (struct part) { .name = name, .fd = -1 };
    if (text == NULL)
        return;
    part->fd = fb_kit_file(text);
    snprintf(part->path, sizeof(part->path), "/proc/self/fd/%d", part->fd);
    snprintf(part->line, sizeof(part->line), "include %s;", part->path);
}

/* The worker's user, who is never become: it only has to exist. */
static const char *user_line(char *line, size_t size)
{
    const struct passwd *user = geteuid() == 0 ? getpwuid(0) : NULL;

    snprintf(line, size, "user %s;", user != NULL ? user->pw_name : "");
    return user != NULL ? line : "";
}

/* The file around the parts. */
static char *write_file(const struct part *parts, uint32_t connections)
{
    char user[64], *text;
    int n = asprintf(&text,
        "daemon off;\nmaster_process off;\n%s\n%s\n"
        "events {\n    worker_connections %u;\n}\n"
        "stream {\n    %s\n    server {\n        listen 192.0.2.80:80;\n        %s\n    }\n}\n",
        user_line(user, sizeof(user)), parts[MAIN].line, connections, parts[STREAM].line,
        parts[SERVER].line);

    if (n == -1)
        fb_kit_misused("no memory for the configuration");
    return text;
}

/* Prints the report with the names of the parts instead of their paths. */
static void show(const char *report, const struct part *parts)
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

static struct fb_cycle *load(
    const fb_protocol *const *protocols, const char *path, const char *label, char **report)
{
    struct fb_log_target target;
    struct fb_log log;
    struct fb_cycle_options options = {
        .conf = path,
        .pid = "/nonexistent/pid",
        .error_log = "stderr",
        .module_directory = "/nonexistent",
        .protocols = protocols,
    };
    struct fb_cycle *cycle;

    fb_log_init_plain(&log, &target, label);
    target.fd = fb_kit_file("");
    cycle = fb_cycle_load(&options, &log, target.fd);
    *report = fb_kit_read(target.fd);
    close(target.fd);
    return cycle;
}

struct fb_cycle *fb_kit_load(
    const fb_protocol *const *protocols, const fb_test_options *options, const char *label)
{
    uint32_t connections =
        options->worker_connections > 0 ? options->worker_connections : CONNECTIONS;
    struct part parts[PARTS];
    struct fb_cycle *cycle;
    char path[32], *text, *report;
    int fd;

    open_part(&parts[MAIN], "the test's main directives", options->main);
    open_part(&parts[STREAM], "the test's stream directives", options->stream);
    open_part(&parts[SERVER], "the test's server directives", options->server);
    text = write_file(parts, connections);
    fd = fb_kit_file(text);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    cycle = load(protocols, path, label, &report);
    show(report, parts);
    free(report);
    free(text);
    close(fd);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].fd != -1)
            close(parts[i].fd);
    return cycle;
}
