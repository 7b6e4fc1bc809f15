/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that are words, as `status`: a row each. */
#pragma once

#include "cli/cmdline.h"

/* Ends with a row without a name. */
extern const struct cmdline_word words_table[];
