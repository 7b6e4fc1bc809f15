/* SPDX-License-Identifier: BSD-2-Clause */
/* `split_clients`: a variable by the hash of a text, so that each value has a part of all texts. */
#pragma once

#include "text/template.h"

#include <stddef.h>
#include <stdint.h>

/* Hundredths of a percent */
#define SPLIT_WHOLE 10000

struct split_part {
    uint32_t end; /* the first hash behind the part */
    struct map_text text;
};

struct split_clients {
    const struct template *source;
    const struct split_part *parts; /* by rising ends */
    unsigned n;
    struct map_text rest; /* value of all other hashes: "*", or nothing */
};

/* The number of hashes in a part. */
uint32_t split_clients_share(unsigned hundredths);
/* MurmurHash2 with the seed 0 */
uint32_t split_clients_hash(const char *p, size_t n);
/* Returns the text for a hash. */
const struct map_text *split_clients_find(const struct split_clients *split, uint32_t hash);
