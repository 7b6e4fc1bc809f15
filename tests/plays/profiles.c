/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the configurations of a play profiles of TLS, without a directive for them, and an engine
 * for their check that reads no file: keepers of a play are scripts (worker.h). */
#include "features/features.h"
#include "plays/play_private.h"

static void finish_profiles(struct apply *apply, struct scope *stream)
{
    (void)stream;
    if (play_now->tls != NULL)
        apply->cycle->tls = *play_now->tls;
}

const struct feature *const *play_features(void)
{
    static const struct feature profiles = { .name = "profiles", .finish = finish_profiles };
    static const struct feature *list[FEATURES + 2];

    for (unsigned i = 0; i < FEATURES; i++)
        list[i] = features_all[i];
    list[FEATURES] = &profiles;
    return list;
}

static struct tls_engine *create_idle(struct tls_files *files, struct log *log)
{
    (void)log;
    return (struct tls_engine *)(void *)files;
}

static void destroy_idle(struct tls_engine *engine)
{
    (void)engine;
}

const struct tls_engine_ops play_engine = { .create = create_idle, .destroy = destroy_idle };
