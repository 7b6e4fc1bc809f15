/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes to the table of known addresses. */
#pragma once

#include "upstream/addresses.h"

/* A process with questions, and its claimed entries. */
struct known_writer {
    const struct zone *zone;
    uint64_t claimed[KNOWN_NAMES / 64];
};

/* Claims the entry of the key, which is made where there is none; KNOWN_NONE: another process has
 * it now. */
uint32_t known_claim(struct known_writer *writer, const struct known_key *key);
/* Writes the addresses of a claimed entry. */
void known_write(struct known_writer *writer, uint32_t entry, const struct resolve_set *set);
/* Notes that a round of questions has ended: without a reason where it was whole. */
void known_note(struct known_writer *writer, uint32_t entry, uint64_t now_ms, const char *name,
    const char *why);
