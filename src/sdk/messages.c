/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's references to connections, and messages between connections of any worker. A reference
 * names one connection for ever; only fb_find() turns it back into a handle. */
#include "worker/messages.h"
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/references.h"

#include <assert.h>

fb_ref fb_ref_of(fb_conn *conn)
{
    return SDK_VALID(conn) ? references_make(sdk_worker_of(conn), conn) : 0;
}

fb_conn *fb_find(fb_worker *worker, fb_ref ref)
{
    worker_check_fork(worker);
    assert(role_is(ROLE_WORKER));
    return references_find(worker, ref);
}

uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return SDK_VALID(from) ? messages_send(sdk_worker_of(from), from, to, p, n) : 0;
}
