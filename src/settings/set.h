/* SPDX-License-Identifier: BSD-2-Clause */
/* `set`: a server's commands. Private to settings/. */
#pragma once

#include "settings/setting.h"
#include "stream/set.h"

struct scope;

SETTER(set_variable);
/* Has the servers run their commands; called when all variables are known. */
void set_finish(struct apply *apply, const struct scope *stream);
