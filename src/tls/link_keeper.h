/* SPDX-License-Identifier: BSD-2-Clause */
/* A link to an engine in a keeper process. */
#pragma once

#include "tls/link.h"

/* Makes a link that is down until tls_link_connect(); NULL without memory. `lost` runs on the loop
 * when the keeper has gone, or has broken a rule, and the link is down again; it may be NULL. */
struct tls_link *tls_link_create(struct loop *loop, void (*lost)(struct loop *loop));
