/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's references to connections and workers, and messages between any of them. A reference
 * names one connection or worker for ever; only fb_find() turns it back into a handle. */
#include "worker/messages.h"
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/references.h"

#include <assert.h>

fb_ref fb_ref_of(fb_conn *conn)
{
    return SDK_VALID(conn) ? messages_reference(sdk_worker_of(conn), conn) : 0;
}

fb_conn *fb_find(fb_worker *worker, fb_ref ref)
{
    assert(role_is(ROLE_WORKER));
    return references_find_for(worker, ref);
}

uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return SDK_VALID(from) ? messages_send(sdk_worker_of(from), from, to, p, n) : 0;
}

fb_ref fb_worker_id(const fb_worker *worker)
{
    return references_own_worker(worker_of(worker));
}

uint32_t fb_worker_number(const fb_worker *worker)
{
    return worker_of(worker)->heritage->index;
}

uint32_t fb_worker_count(const fb_worker *worker)
{
    const struct worker *process = worker_of(worker);

    return process->role == ROLE_SINGLE ? 1 : (uint32_t)process->cycle->core.worker_processes;
}

uint64_t fb_send_worker(fb_worker *from, fb_ref to, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return messages_send_from_worker(from, to, p, n);
}

uint64_t fb_send_all(fb_worker *from, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return messages_send_all(from, p, n);
}
