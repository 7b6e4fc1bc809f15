/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with the secrets of sessions: see key_log.h. */
#include "keeper/key_log.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int open_key_log(
    struct key_log *key_log, struct tls_files *files, uint32_t index, struct log *log)
{
    const struct tls_file *file = &files->profiles->files[index];

    assert(file->appends && !key_log->open);
    *key_log = (struct key_log) { .path = file->path, .log = log };
    key_log->fd = files->open(files, index);
    key_log->open = key_log->fd != -1;
    if (key_log->open)
        return 0;
    log_write(log, LEVEL_EMERG, errno, "cannot open key log \"%s\" in %s", file->path, file->at);
    return -1;
}

int key_logs_open(struct key_logs *logs, struct tls_files *files, struct log *log)
{
    const struct tls_profiles *profiles = files->profiles;
    int status = 0;

    for (unsigned i = 0; i < profiles->n; i++) {
        const uint32_t *index = profiles->list[i].key_log;

        if (index == NULL)
            continue;
        assert(*index < profiles->file_n);
        if (logs->list == NULL) {
            logs->list = calloc(profiles->file_n, sizeof(*logs->list));
            logs->n = profiles->file_n;
        }
        if (logs->list == NULL) {
            log_write(log, LEVEL_EMERG, 0, "no memory for key logs");
            logs->n = 0;
            return -1;
        }
        if (!logs->list[*index].open && open_key_log(&logs->list[*index], files, *index, log) == -1)
            status = -1;
    }
    return status;
}

struct key_log *key_logs_find(const struct key_logs *logs, const struct tls_profile *profile)
{
    if (profile->key_log == NULL)
        return NULL;
    assert(*profile->key_log < logs->n && logs->list[*profile->key_log].open);
    return &logs->list[*profile->key_log];
}

void key_logs_close(struct key_logs *logs)
{
    for (unsigned i = 0; i < logs->n; i++)
        if (logs->list[i].open)
            close(logs->list[i].fd);
    free(logs->list);
    *logs = (struct key_logs) { .list = NULL };
}

void key_log_write(struct key_log *log, const char *line)
{
    const struct iovec parts[] = {
        { .iov_base = (char *)(uintptr_t)line, .iov_len = strlen(line) },
        { .iov_base = (char[]) { '\n' }, .iov_len = 1 },
    };
    ssize_t n = writev(log->fd, parts, 2);

    if (n == (ssize_t)parts[0].iov_len + 1 || log->failed)
        return;
    log->failed = true;
    log_write(log->log, LEVEL_ALERT, n == -1 ? errno : 0,
        "keys of sessions cannot be written to \"%s\"", log->path);
}
