/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of features: a row in features.def is a folder beside this file. */
#pragma once

#include "settings/feature.h"

/* Places of the features in lists of their structs. */
enum {
#define FEATURE(id, name) FEATURE_##id,
#include "features/features.def"
#undef FEATURE
    FEATURES
};

#define FEATURE(id, name) extern const struct feature name##_feature;
#include "features/features.def"
#undef FEATURE

/* The list for cycle_options.features; ends with NULL. */
extern const struct feature *const features_all[];

/* Starts the features in a worker; -1 after a line in the log, and then all are to be closed. */
int features_open(struct stream *stream, const struct cycle *cycle, struct slot_id slot);
/* Closes all features, when no session is left; also features that were not opened. */
void features_close(struct stream *stream, const struct cycle *cycle);
