/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes files into a directory, loads a configuration of them, and compares the messages. */
#include "settings/loading.h"

#include "features/features.h"
#include "protocols/table.h"

#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

void loading_begin(struct loading *loading)
{
    memset(loading, 0, sizeof(*loading));
    strcpy(loading->directory, "/tmp/fb_settings.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(loading->directory));
    snprintf(loading->conf, sizeof(loading->conf), "%s/main", loading->directory);
    loading->options = (struct cycle_options) {
        .conf = loading->conf,
        .pid = "/default/pid",
        .error_log = "/default/error.log",
        .module_directory = loading->directory,
        .protocols = protocols_builtin,
        .features = features_all,
    };
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void loading_end(struct loading *loading)
{
    cycle_destroy(&loading->cycle);
    if (getuid() == 0) /* become_nobody() ends here */
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(nftw(loading->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void add_file(struct loading *loading, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", loading->directory, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

void add_module(struct loading *loading, const char *name)
{
    char from[PATH_MAX], to[128];

    snprintf(from, sizeof(from), MODULES_PATH "/%s", name);
    snprintf(to, sizeof(to), "%s/%s", loading->directory, name);
    ck_assert_int_eq(symlink(from, to), 0);
}

/* `with` is not longer than `what`. */
static void replace_text(char *text, const char *what, const char *with)
{
    size_t n = strlen(what), m = strlen(with);

    while ((text = strstr(text, what)) != NULL) {
        memcpy(text, with, m);
        memmove(text + m, text + n, strlen(text + n) + 1);
        text += m;
    }
}

static void read_report(struct loading *loading, int fd)
{
    ssize_t n = pread(fd, loading->report, sizeof(loading->report) - 1, 0);

    ck_assert_int_ge(n, 0);
    ck_assert_int_lt(n, (ssize_t)sizeof(loading->report) - 1);
    loading->report[n] = '\0';
    replace_text(loading->report, loading->directory, "");
    replace_text(loading->report, ": [emerg] ", "");
    replace_text(loading->report, ": [warn] ", "warning: ");
    replace_text(loading->report, ": [notice] ", "notice: ");
}

void load(struct loading *loading, const char *text)
{
    struct log_target target;
    struct log log;
    int fd = memfd_create("report", MFD_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    add_file(loading, "main", text);
    log_init_plain(&log, &target, "");
    target.fd = fd;
    cycle_destroy(&loading->cycle);
    loading->cycle = cycle_load(&loading->options, &log, -1);
    read_report(loading, fd);
    close(fd);
}

void accept_text(struct loading *loading, const char *text, const char *messages)
{
    load(loading, text);
    ck_assert_msg(strcmp(loading->report, messages) == 0, "%s\nsays\n%sinstead of\n%s", text,
        loading->report, messages);
    ck_assert_msg(loading->cycle != NULL, "%s\nis refused", text);
}

void refuse_text(struct loading *loading, const char *text, const char *messages)
{
    load(loading, text);
    ck_assert_msg(strcmp(loading->report, messages) == 0, "%s\nsays\n%sinstead of\n%s", text,
        loading->report, messages);
    ck_assert_msg(loading->cycle == NULL, "%s\nis accepted", text);
}

void judge_text(struct loading *loading, const char *text, const char *wrong)
{
    if (wrong == NULL)
        accept_text(loading, text, "");
    else
        refuse_text(loading, text, wrong);
}

const struct server *loading_server(const struct loading *loading, unsigned i)
{
    const struct server *server = STAILQ_FIRST(&loading->cycle->stream.servers);

    while (i-- > 0)
        server = STAILQ_NEXT(server, link);
    return server;
}

const struct binding *loading_binding(const struct loading *loading, unsigned i)
{
    const struct listener *listener = STAILQ_FIRST(&loading->cycle->stream.listeners.list);
    const struct port *port;

    while (i-- > 0)
        listener = STAILQ_NEXT(listener, link);
    port = listener->owner;
    return STAILQ_FIRST(&port->bindings);
}

void become_nobody(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
}
