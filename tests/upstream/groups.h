/* SPDX-License-Identifier: BSD-2-Clause */
/* A group of servers for tests, as in a configuration and a worker, with a clock set by the
 * test. */
#pragma once

#include "base/memory.h"
#include "support/test.h"
#include "upstream/balancer.h"

#include <stdio.h>
#include <string.h>

#define GROUP_SERVERS 100

struct group {
    struct loop loop;
    struct log log;
    struct upstreams upstreams;
    struct upstream_list list;
    struct upstream upstream;
    struct upstream_server servers[GROUP_SERVERS];
    struct fb_target targets[GROUP_SERVERS];
    char names[GROUP_SERVERS][24];
    char reported[200]; /* the last line: LEVEL UPSTREAM: TEXT */
    unsigned reports;
};

static struct group *group_of(const struct choice *choice)
{
    return container_of(choice_upstreams(choice), struct group, upstreams);
}

static void group_report(
    struct choice *choice, enum log_level level, const char *upstream, const char *message)
{
    struct group *group = group_of(choice);

    snprintf(group->reported, sizeof(group->reported), "%s %s: %s", log_level_name(level), upstream,
        message);
    group->reports++;
}

static uint32_t group_random(struct upstreams *upstreams, uint32_t below)
{
    (void)upstreams;
    return below - 1;
}

/* Makes a group without servers. */
static struct group *group_create(void)
{
    struct group *group = calloc(1, sizeof(*group));

    ck_assert_ptr_nonnull(group);
    log_init(&group->log, NULL, 0);
    STAILQ_INIT(&group->list);
    STAILQ_INSERT_TAIL(&group->list, &group->upstream, link);
    group->loop.log = &group->log;
    group->loop.clock.mono_ms = 100000;
    group->loop.log = &group->log;
    group->upstreams = (struct upstreams) {
        .list = &group->list,
        .loop = &group->loop,
        .log = &group->log,
        .memory = &memory_plain,
        .report = group_report,
        .random = group_random,
    };
    group->upstream.kind = UPSTREAM_KIND;
    group->upstream.name = "group";
    group->upstream.balance.balancer = &balancer_round_robin;
    STAILQ_INIT(&group->upstream.servers);
    return group;
}

/* Adds a server, 127.0.0.1 with port 9000 and the server's number, with nginx's defaults. */
static struct upstream_server *group_add(struct group *group, uint32_t weight)
{
    unsigned i = group->upstream.server_n++;
    struct upstream_server *server = &group->servers[i];

    ck_assert_uint_lt(i, GROUP_SERVERS);
    snprintf(group->names[i], sizeof(group->names[i]), "127.0.0.1:%u", 9000 + i);
    ck_assert_ptr_null(target_parse(group->names[i], false, &group->targets[i]));
    *server = (struct upstream_server) { .name = group->names[i],
        .target = &group->targets[i],
        .is_checked = true,
        .weight = weight,
        .max_fails = 1,
        .fail_timeout = 10000 };
    STAILQ_INSERT_TAIL(&group->upstream.servers, server, link);
    return server;
}

static void group_open(struct group *group)
{
    ck_assert_int_eq(upstreams_open(&group->upstreams), 0);
}

static void group_close(struct group **group)
{
    upstreams_close(&(*group)->upstreams);
    free(*group);
    *group = NULL;
}

static inline void group_wait(struct group *group, uint64_t ms)
{
    group->loop.clock.mono_ms += ms;
}

static inline struct peer *group_peer(const struct group *group, unsigned i)
{
    ck_assert_uint_lt(i, group->upstream.peers->n);
    return group->upstream.peers->list[i];
}

static inline void group_begin(struct group *group, struct choice *choice)
{
    choice_begin(choice, &group->upstream);
}

/* A letter for the chosen server, by number; '-': none. */
static inline char group_letter(const struct group *group, const struct choice *choice)
{
    return choice->peer != NULL ? (char)('a' + (choice->peer->server - group->servers)) : '-';
}

/* Chooses for a session; returns the letter. */
static inline char group_next(struct group *group, struct choice *choice)
{
    fb_choice status = choice_next(choice);

    ck_assert_int_eq(status, choice->peer != NULL ? FB_CHOICE_SERVER : FB_CHOICE_NONE);
    return group_letter(group, choice);
}

/* Makes a whole session of one try. */
static inline char group_session(struct group *group, fb_try_end how)
{
    struct choice choice;
    char letter;

    group_begin(group, &choice);
    letter = group_next(group, &choice);
    if (letter != '-')
        choice_end(&choice, how);
    return letter;
}

/* Begins sessions in sequence, and checks the servers. */
static inline void group_expect(struct group *group, const char *letters)
{
    char seen[201] = "";
    size_t n = strlen(letters);

    ck_assert_uint_lt(n, sizeof(seen));
    for (size_t i = 0; i < n; i++)
        seen[i] = group_session(group, FB_TRY_SERVED);
    seen[n] = '\0';
    ck_assert_str_eq(seen, letters);
}
