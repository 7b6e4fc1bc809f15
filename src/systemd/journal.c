/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores the identity of the journal's stream, and the socket. While the socket is not connected no
 * line is lost: lines go to standard error instead. */
#include "systemd/journal.h"

#include "os/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_PATH "/run/systemd/journal/socket"

static struct {
    bool named; /* JOURNAL_STREAM was there */
    unsigned long long device, inode;
    int fd;
} journal = { .fd = -1 };

void journal_init(void)
{
    const char *stream = getenv("JOURNAL_STREAM");

    journal.named =
        stream != NULL && sscanf(stream, "%llu:%llu", &journal.device, &journal.inode) == 2;
}

bool journal_is_stderr(void)
{
    struct stat st;

    return journal.named && fstat(STDERR_FILENO, &st) == 0 && st.st_dev == journal.device &&
           st.st_ino == journal.inode;
}

int journal_connect(void)
{
    static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SOCKET_PATH };

    return connect(journal.fd, (const struct sockaddr *)&address, sizeof(address));
}

int journal_socket(void)
{
    if (journal.fd != -1)
        return journal.fd;
    journal.fd = descriptor_socket(AF_UNIX, SOCK_DGRAM, O_NONBLOCK);
    if (journal.fd != -1)
        journal_connect(); /* on failure lines go to standard error until logs are reopened */
    return journal.fd;
}
