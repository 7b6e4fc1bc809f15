/* SPDX-License-Identifier: BSD-2-Clause */
/* A robust mutex in shared memory. When its owner dies, the next process that locks it gets
 * SHM_MUTEX_OWNER_DIED, repairs what the dead process has left incomplete, and marks it as
 * repaired. No process ever waits for a dead owner. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum shm_mutex_state {
    SHM_MUTEX_BUSY,   /* locked by a living process */
    SHM_MUTEX_LOCKED, /* locked */
    /* locked, but its last owner has died: repair, then shm_mutex_mark_repaired() */
    SHM_MUTEX_OWNER_DIED,
};

/* Makes a mutex in memory that nobody uses yet; -1 with errno. */
int shm_mutex_init(pthread_mutex_t *mutex);

/* Locks the mutex, waiting if need be; returns one of the last two states. */
enum shm_mutex_state shm_mutex_lock(pthread_mutex_t *mutex);
/* Locks the mutex unless a living process has it. */
enum shm_mutex_state shm_mutex_try(pthread_mutex_t *mutex);
/* Marks the guarded data as repaired; without this the next owner would get SHM_MUTEX_OWNER_DIED
 * too. */
void shm_mutex_mark_repaired(pthread_mutex_t *mutex);
void shm_mutex_unlock(pthread_mutex_t *mutex);
