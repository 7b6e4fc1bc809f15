/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the built-in protocols, made of the rows of protocols.def. */
#include "protocols/table.h"

#define PROTOCOL(name) extern const fb_protocol fb_protocol_##name;
#include "protocols/protocols.def"
#undef PROTOCOL

const fb_protocol *const protocols_builtin[] = {
#define PROTOCOL(name) &fb_protocol_##name,
#include "protocols/protocols.def"
#undef PROTOCOL
    NULL,
};
