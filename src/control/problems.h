/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with the daemon now: nothing is listed while all is well. Private to control/. */
#pragma once

#include "control/control.h"

/* Writes the member "problems", and the number of those that were left out. */
void control_problems_write(const struct control *control, struct json *json);
