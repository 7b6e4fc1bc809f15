/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks keepers for reports: see report.h. The keeper may go on writing while the memory is read,
 * so the text is copied first. */
#include "pool/report.h"

#include "os/descriptor.h"
#include "os/memory_file.h"
#include "process/role.h"

#include <assert.h>
#include <stdlib.h>

/* Returns the keeper that reads the files of its generation; NULL: without a process. */
static struct pool_worker *find_reporter(const struct pool *pool)
{
    struct generation *generation = pool->serving;
    struct pool_worker *keeper = generation != NULL && generation->keeper_n > 0
                                     ? &generation->workers[generation->serve_n]
                                     : NULL;

    return keeper != NULL && keeper->phase >= POOL_WORKER_READY && keeper->killed == POOL_KILL_NONE
               ? keeper
               : NULL;
}

const char *pool_report_ask(struct pool *pool)
{
    struct pool_worker *keeper = find_reporter(pool);
    struct channel_message wanted = { MESSAGE_REPORT_WANTED, 0, -1 };

    assert(role_is(ROLE_MASTER));
    if (pool->reporter != NULL)
        return NULL;
    if (keeper == NULL)
        return "no keeper process knows of certificates now, try again";
    wanted.fd = memory_file_make("forkbeard-report", TLS_REPORT_SIZE);
    if (wanted.fd == -1)
        return "no memory for a report about certificates";
    if (!channel_end_try(&keeper->channel, &wanted)) {
        descriptor_close(wanted.fd);
        return "the keeper process does not read its messages, try again";
    }
    pool->reporter = keeper;
    pool->report = wanted.fd;
    return NULL;
}

/* Gives the owner the report, or, NULL, the news of none. */
static void end_report(struct pool *pool, const char *text, size_t n)
{
    descriptor_close(pool->report);
    pool->report = -1;
    pool->reporter = NULL;
    pool->ops->reported(pool->host, text, n);
}

const char *pool_report_take(struct pool_worker *worker, uint32_t n)
{
    struct pool *pool = worker->generation->pool;
    char *text;
    bool came;

    if (pool->reporter != worker)
        return "a report that was not asked for";
    if (n > TLS_REPORT_SIZE)
        return "a report that is too long";
    text = malloc(n + (size_t)1);
    came = text != NULL && n > 0 && memory_file_read(pool->report, text, n) == 0;
    end_report(pool, came ? text : NULL, n);
    free(text);
    return NULL;
}

void pool_report_lose(struct pool_worker *worker)
{
    if (worker->generation->pool->reporter == worker)
        end_report(worker->generation->pool, NULL, 0);
}
