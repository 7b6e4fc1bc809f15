/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's status for people. */
#pragma once

#include "base/json.h"

#include <stdio.h>

/* `status` is the control socket's answer. */
void fb_show_status(struct fb_json_value status, FILE *out);
