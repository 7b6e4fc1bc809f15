/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the peer that has the fewest connections for its weight. */
#include "upstream/least_conn.h"

uint32_t least_conn_load(const struct choice *choice, const struct peer *peer)
{
    (void)choice;
    return peer_conns(peer);
}

static struct peer *choose(struct choice *choice)
{
    return least_choose(choice, least_conn_load);
}

const struct balancer balancer_least_conn = {
    .name = "least_conn",
    .choose = choose,
    .takes_backup = true,
    .takes_slow_start = true,
};
