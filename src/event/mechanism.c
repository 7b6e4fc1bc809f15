/* SPDX-License-Identifier: BSD-2-Clause */
#include "event/mechanism.h"

#include "base/compiler.h"
#include "event/loop.h"

#include <assert.h>
#include <string.h>

const struct fb_mechanism *const fb_mechanisms[] = {
    &fb_mechanism_epoll,
    &fb_mechanism_poll,
    &fb_mechanism_select,
    NULL,
};

static_assert(fb_countof(fb_mechanisms) <= FB_MECHANISMS_MAX + 1, "the settings have room for all");

const struct fb_mechanism *fb_mechanism_find(const char *name)
{
    for (const struct fb_mechanism *const *m = fb_mechanisms; *m != NULL; m++)
        if (name == NULL ? (*m)->available() : strcmp((*m)->name, name) == 0)
            return *m;
    return NULL;
}

void fb_system_clock(struct fb_loop *loop)
{
    fb_clock_read(&loop->clock);
}
