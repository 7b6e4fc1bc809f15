/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and resolves references. The first reference of a worker opens its message queues, so that
 * whoever has a reference can also be sent to. */
#include "worker/references.h"

#include "stream/session_conn.h"
#include "worker/messages.h"
#include "worker/worker.h"

#include <assert.h>

#define NAME_BITS (64 - INCARNATION_BITS)

uint32_t references_incarnation(fb_ref ref)
{
    return (uint32_t)(ref >> NAME_BITS);
}

uint32_t references_own(const struct fb_worker *worker)
{
    return slot_incarnation(worker->heritage->slot);
}

fb_ref references_make(struct fb_worker *worker, struct fb_conn *conn)
{
    uint64_t name = messages_open(worker) ? session_name(conn) : 0;

    assert(name >> NAME_BITS == 0);
    return name == 0 ? 0 : (fb_ref)references_own(worker) << NAME_BITS | name;
}

struct fb_conn *references_find(struct fb_worker *worker, fb_ref ref)
{
    if (references_incarnation(ref) != references_own(worker))
        return NULL;
    return session_find(&worker->stream, ref & ((UINT64_C(1) << NAME_BITS) - 1));
}
