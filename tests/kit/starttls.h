/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <forkbeard/forkbeard.h>

extern const fb_protocol fb_protocol_starttls;
