/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocols that are built in. A new one is a folder, and a name here twice. */
#include "protocols/table.h"

extern const fb_protocol fb_protocol_daytime, fb_protocol_discard, fb_protocol_echo,
    fb_protocol_return, fb_protocol_stub_status;

const fb_protocol *const fb_protocols[] = {
    &fb_protocol_daytime,
    &fb_protocol_discard,
    &fb_protocol_echo,
    &fb_protocol_return,
    &fb_protocol_stub_status,
    NULL,
};
