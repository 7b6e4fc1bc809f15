/* SPDX-License-Identifier: BSD-2-Clause */
/* A module with a fault, put in a chosen place by the build. */
#include <forkbeard/forkbeard.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef FAULTY_ABI
#define FAULTY_ABI FB_ABI
#endif
#ifndef FAULTY_API
#define FAULTY_API FB_API
#endif
#ifndef FAULTY_NAME
#define FAULTY_NAME "faulty"
#endif
#ifndef FAULTY_HANDLER
#define FAULTY_HANDLER "faulty"
#endif
#ifndef FAULTY_OPS
#define FAULTY_OPS .opened = faulty_opened
#endif
#ifndef FAULTY_OPENED
#define FAULTY_OPENED (void)0
#endif
#ifndef FAULTY_LOADED
#define FAULTY_LOADED (void)0
#endif
#ifndef FAULTY_UNLOADED
#define FAULTY_UNLOADED (void)0
#endif
#ifndef FAULTY_SET
#define FAULTY_SET (void)0
#endif
#ifndef FAULTY_DONE
#define FAULTY_DONE (void)0
#endif

/* No library has them. */
void fb_frobnicate(void);
void frobnicate(void);

/* Crashes like a bug would, under any sanitizer. */
__attribute__((unused)) static void crash(void)
{
    raise(SIGSEGV);
}

static void *wait_for_ever(void *arg)
{
    pause();
    return arg;
}

__attribute__((unused)) static void start_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_ever, NULL);
}

__attribute__((constructor)) static void loaded(void)
{
    FAULTY_LOADED;
}

__attribute__((destructor)) static void unloaded(void)
{
    FAULTY_UNLOADED;
}

__attribute__((unused)) static int faulty_opened(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    FAULTY_OPENED;
    return 0;
}

static int faulty_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)value;
    (void)args;
    (void)n;
    FAULTY_SET;
    return 0;
}

static int faulty_done(fb_conf *conf, void *own, const void *parent)
{
    (void)conf;
    (void)own;
    (void)parent;
    FAULTY_DONE;
    return 0;
}

static const fb_directive directives[] = {
    { .name = FAULTY_HANDLER, .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "faulty_option", .value = FB_VALUE_CUSTOM, .set = faulty_set, .args_most = 1 },
};

static const fb_ops ops = { .size = sizeof(fb_ops), FAULTY_OPS };

FB_PROTOCOL(faulty) = {
    .abi = FAULTY_ABI,
    .api = FAULTY_API,
    .size = sizeof(fb_protocol),
    .directive_size = sizeof(fb_directive),
    .name = FAULTY_NAME,
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .conf_done = faulty_done,
};
