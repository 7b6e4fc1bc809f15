/* SPDX-License-Identifier: BSD-2-Clause */
/* The table for the loader of the checked mode: each call with its wrapper, because handles of that
 * mode mean nothing to the calls themselves, and the maker of a protocol's wrappers. */
#include "checked/calls.h"
#include "module/module.h"

#define CALL(call) { "fb_" #call, (void (*)(void))fb_##call, (void (*)(void))checked_##call },

const struct relink_call checked_calls[] = {
#include "checked/calls.def"
    { NULL, NULL, NULL },
};

const fb_protocol *(*const checked_protocol_wrapper)(
    struct arena *arena, const fb_protocol *copy) = checked_protocol_make;
