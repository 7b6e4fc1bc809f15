/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX robust mutexes. An error means a bug or overwritten memory and ends the process: to
 * continue without the mutex would corrupt the guarded data for every process. */
#include "shm/mutex.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>

static int init_with(pthread_mutex_t *mutex, pthread_mutexattr_t *attributes)
{
    int error = pthread_mutexattr_setpshared(attributes, PTHREAD_PROCESS_SHARED);

    if (error == 0)
        error = pthread_mutexattr_setrobust(attributes, PTHREAD_MUTEX_ROBUST);
    if (error == 0)
        error = pthread_mutex_init(mutex, attributes);
    return error;
}

int shm_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);

    assert((uintptr_t)mutex % alignof(pthread_mutex_t) == 0);
    if (error == 0) {
        error = init_with(mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    errno = error;
    return error == 0 ? 0 : -1;
}

enum shm_mutex_state shm_mutex_lock(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_lock(mutex);

    assert(error == 0 || error == EOWNERDEAD);
    return error == EOWNERDEAD ? SHM_MUTEX_OWNER_DIED : SHM_MUTEX_LOCKED;
}

enum shm_mutex_state shm_mutex_try(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_trylock(mutex);

    assert(error == 0 || error == EOWNERDEAD || error == EBUSY);
    if (error == EBUSY)
        return SHM_MUTEX_BUSY;
    return error == EOWNERDEAD ? SHM_MUTEX_OWNER_DIED : SHM_MUTEX_LOCKED;
}

void shm_mutex_mark_repaired(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_consistent(mutex);

    assert(error == 0);
    (void)error;
}

void shm_mutex_unlock(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_unlock(mutex);

    assert(error == 0);
    (void)error;
}
