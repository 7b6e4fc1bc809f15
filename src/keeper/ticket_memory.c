/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory with the keys of tickets: see ticket_memory.h. */
#include "keeper/ticket_memory.h"

#include "os/memory.h"
#include "os/memory_file.h"
#include "tls/engine.h"

#include <assert.h>
#include <sys/stat.h>

int ticket_memory_create(void)
{
    return memory_file_make("forkbeard-tickets", TLS_TICKETS_SIZE);
}

bool ticket_memory_fits(int fd, uint32_t layout)
{
    struct stat status;

    assert(fd != -1);
    return layout == TLS_TICKETS_LAYOUT && os_segment_check(fd) == 0 && fstat(fd, &status) == 0 &&
           S_ISREG(status.st_mode) && status.st_size == TLS_TICKETS_SIZE;
}

void *ticket_memory_map(int fd)
{
    void *memory = mmap(NULL, TLS_TICKETS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return memory != MAP_FAILED ? memory : NULL;
}
