/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics in the status: of clients by `listen` and by protocol, of tries by the server of a
 * group, and of waits by queue. */
#pragma once

#include "base/json.h"
#include "session/server.h"

/* Writes the members "servers", "protocols" and "upstream_servers" of the status, which are missing
 * where the configuration has none. */
void control_traffic_write(const struct stream_settings *stream, struct json *json);
