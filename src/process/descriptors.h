/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of descriptors: those that a forked child keeps open, so that all others can be closed by
 * ranges. A set only names descriptors and owns none. After a lack of memory a set is `failed`, and
 * must not be used to close others. */
#pragma once

#include "base/log.h"

#include <stdbool.h>

struct descriptors {
    int *fds; /* in no order, perhaps twice */
    unsigned n, size;
    bool failed; /* a descriptor is missing, for lack of memory */
};

/* Adds one; -1 stands for none and is left out. */
void descriptors_add(struct descriptors *set, int fd);
/* Adds what writing to these targets needs. */
void descriptors_add_targets(struct descriptors *set, const struct log_target *targets, unsigned n);
void descriptors_add_target(struct descriptors *set, const struct log_target *target);
void descriptors_add_all(struct descriptors *set, const struct descriptors *other);
/* Adds every descriptor of this process that is open now, and not in `except` (or NULL), which this
 * has filled before: it leaves the set sorted. Adds none where the system does not tell. */
void descriptors_add_open(struct descriptors *set, const struct descriptors *except);
/* Forgets those that have been closed since. */
void descriptors_drop_closed(struct descriptors *set);
/* Closes every descriptor of this process but those of the set and the standard ones. Sorts the
 * set, which must not have failed. */
void descriptors_close_others(struct descriptors *set);
/* Frees the memory; nothing is closed. */
void descriptors_done(struct descriptors *set);
