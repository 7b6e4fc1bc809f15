/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of clients in the status: of each `listen` of a server, and of protocols. */
#pragma once

#include "base/json.h"
#include "session/server.h"

/* Writes the members "servers" and "protocols" of the status. */
void control_traffic_write(const struct stream_settings *stream, struct json *json);
