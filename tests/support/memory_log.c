/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the log in a file of memory, emptied at every read. */
#include "support/memory_log.h"

#include "support/test.h"

#include <sys/mman.h>
#include <unistd.h>

void memory_log_open(struct memory_log *memory, enum log_level level)
{
    memory->target = (struct log_target) { .fd = memfd_create("log", MFD_CLOEXEC), .level = level };
    ck_assert_int_ne(memory->target.fd, -1);
    log_init(&memory->log, &memory->target, 1);
    memory->log.plain = "t";
}

const char *memory_log_take(struct memory_log *memory)
{
    ssize_t n = pread(memory->target.fd, memory->text, sizeof(memory->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    memory->text[n] = '\0';
    ck_assert_int_eq(ftruncate(memory->target.fd, 0), 0);
    ck_assert_int_eq(lseek(memory->target.fd, 0, SEEK_SET), 0);
    return memory->text;
}

void memory_log_close(struct memory_log *memory)
{
    ck_assert_str_eq(memory_log_take(memory), "");
    close(memory->target.fd);
    memory->target.fd = -1;
}
