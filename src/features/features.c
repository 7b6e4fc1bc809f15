/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of features, and what a worker does with each. */
#include "features/features.h"

static_assert(FEATURES <= STREAM_FEATURES, "servers have room for the parts of features");

const struct feature *const features_all[] = {
#define FEATURE(id, name) [FEATURE_##id] = &name##_feature,
#include "features/features.def"
#undef FEATURE
    NULL,
};

int features_open(struct stream *stream, const struct cycle *cycle, struct slot_id slot)
{
    for (unsigned i = 0; i < FEATURES; i++)
        if (features_all[i]->open != NULL && features_all[i]->open(stream, cycle, slot) == -1)
            return -1;
    return 0;
}

void features_close(struct stream *stream, const struct cycle *cycle)
{
    for (unsigned i = FEATURES; i-- > 0;)
        if (features_all[i]->close != NULL)
            features_all[i]->close(stream, cycle);
}
