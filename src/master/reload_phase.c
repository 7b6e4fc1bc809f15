/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a reload: one function changes it, by a step that must be legal. */
#include "master/reload.h"

#include "base/compiler.h"
#include "pool/pool.h"
#include "process/role.h"

#include <assert.h>

/* A check takes too long. */
static void deadline_expired(struct loop *loop, struct timer *timer)
{
    struct reload *reload = container_of(timer, struct reload, deadline);

    (void)loop;
    assert(reload->phase == RELOAD_CHECKING);
    config_check_kill(&reload->check);
}

void reload_init(struct reload *reload, struct timers *timers)
{
    *reload = (struct reload) { .timers = timers, .deadline = { .expired = deadline_expired } };
}

void reload_set_phase(struct reload *reload, enum reload_phase phase)
{
    static const unsigned legal[] = {
        [RELOAD_IDLE] = 1u << RELOAD_CHECKING,
        [RELOAD_CHECKING] = 1u << RELOAD_PREPARING | 1u << RELOAD_IDLE,
        [RELOAD_PREPARING] = 1u << RELOAD_COMMITTED | 1u << RELOAD_IDLE,
        [RELOAD_COMMITTED] = 1u << RELOAD_PROVING | 1u << RELOAD_GOING_BACK | 1u << RELOAD_IDLE,
        [RELOAD_PROVING] = 1u << RELOAD_GOING_BACK | 1u << RELOAD_IDLE,
        [RELOAD_GOING_BACK] = 1u << RELOAD_IDLE,
    };

    assert(role_is(ROLE_MASTER));
    assert((legal[reload->phase] >> phase & 1) != 0);
    reload->phase = phase;
}

void reload_check(const struct reload *reload, const struct pool *pool)
{
    const struct generation *starting = pool->starting;

    assert((reload->check.pid > 0) == (reload->phase == RELOAD_CHECKING));
    assert(reload->phase == RELOAD_CHECKING || reload->deadline.deadline == 0);
    switch (reload->phase) {
    case RELOAD_IDLE:
        assert(starting == NULL || pool->serving == NULL); /* the daemon's start */
        break;
    case RELOAD_CHECKING:
        assert(starting == NULL && pool->serving != NULL);
        break;
    case RELOAD_PREPARING:
        assert(starting != NULL && starting->phase == GENERATION_STARTING);
        assert(pool->serving != NULL);
        break;
    case RELOAD_COMMITTED:
        assert(starting != NULL && starting->phase == GENERATION_COMMITTED);
        break;
    case RELOAD_PROVING:
        assert(starting == NULL && pool->probation.before != NULL);
        assert(!pool->probation.goes_back);
        break;
    case RELOAD_GOING_BACK:
        assert(pool->probation.goes_back); /* the old one starts, or waits */
        break;
    }
}
