/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "log": shows the level that an operator has set for all error logs, or sets a level,
 * for a time or without an end, or the configuration's levels again. */
#pragma once

#include "control/client.h"

void control_log_level_handle(struct control_client *client, struct json_value request);
