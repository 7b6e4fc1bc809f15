/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the program's descriptors by asking for each number. A descriptor's file has no name here,
 * but the numbers of its device and its inode. */
#include "kit/kit.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors beyond would take long to ask for, and the lowest free one is taken first. */
#define ASKED_MOST 4096

void kit_descriptors_list(struct kit_descriptors *open)
{
    long limit = sysconf(_SC_OPEN_MAX);
    int most = limit > 0 && limit < ASKED_MOST ? (int)limit : ASKED_MOST;
    struct stat st;
    char what[128];

    SLIST_INIT(open);
    for (int fd = 0; fd < most; fd++) {
        if (fstat(fd, &st) == -1)
            continue;
        snprintf(what, sizeof(what), "device %ju, inode %ju", (uintmax_t)st.st_dev,
            (uintmax_t)st.st_ino);
        kit_descriptors_add(open, fd, what);
    }
}
