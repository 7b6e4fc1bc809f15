/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of descriptors for a forked child to keep, as it closes the rest by ranges. A set owns none.
 * After a lack of memory a set is `failed`, and must not be used for closing. */
#pragma once

#include "base/log.h"

#include <stdbool.h>

struct descriptors {
    int *fds; /* in no order, perhaps twice */
    unsigned n, size;
    bool failed; /* a descriptor is missing, for lack of memory */
};

/* Adds a descriptor, unless -1. */
void descriptors_add(struct descriptors *set, int fd);
/* Adds the descriptors of a log's target. */
void descriptors_add_target(struct descriptors *set, const struct log_target *target);
void descriptors_add_all(struct descriptors *set, const struct descriptors *other);
/* Fills an empty set with the open descriptors of this process outside `except` (or NULL), filled
 * by an earlier call. None where the system does not tell. */
void descriptors_find_open(struct descriptors *set, const struct descriptors *except);
/* Drops closed descriptors. */
void descriptors_drop_closed(struct descriptors *set);
/* Closes all descriptors but the sorted set, which must not have failed, and the standard ones. */
void descriptors_close_others(struct descriptors *set);
/* Frees the memory; nothing is closed. */
void descriptors_done(struct descriptors *set);
