/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the built-in protocols, generated from protocols.def. A new protocol needs one row
 * there and nothing here. */
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
