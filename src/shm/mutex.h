/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex in shared memory that outlives its holder: whoever takes it first after a holder's death
 * is told so, and repairs what the dead process has left half done. Nobody waits for the dead. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum shm_mutex_state {
    SHM_MUTEX_BUSY,       /* held by a process that lives */
    SHM_MUTEX_LOCKED,     /* taken */
    SHM_MUTEX_OWNER_DIED, /* taken, after its holder died with it: shm_mutex_mark_repaired() follows */
};

/* Makes a mutex in memory that nobody uses yet; -1 with errno. */
int shm_mutex_init(pthread_mutex_t *mutex);

/* Waits until the mutex is taken, in one of the last two states. */
enum shm_mutex_state shm_mutex_lock(pthread_mutex_t *mutex);
/* Takes the mutex if its holder does not live. */
enum shm_mutex_state shm_mutex_try(pthread_mutex_t *mutex);
/* Marks what the mutex guards as repaired; until then the next holder would inherit it as well. */
void shm_mutex_mark_repaired(pthread_mutex_t *mutex);
void shm_mutex_unlock(pthread_mutex_t *mutex);
