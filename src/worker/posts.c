/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of posted work. A source of the loop's own, which has no descriptor, stands for the list
 * in the queue of the next turn: a loop without posts pays nothing for them. A turn runs what was
 * posted before it, so that work which posts itself leaves others their time. */
#include "worker/posts.h"

#include "base/check.h"
#include "worker/worker.h"

#include <string.h>

struct post {
    STAILQ_ENTRY(post) link;
    struct fb_worker *handle; /* the protocol that has posted it */
    void (*run)(struct fb_worker *handle, void *work);
    void *work;
    max_align_t bytes[];
};

static void run_post(struct worker *worker, struct post *post)
{
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;

    heartbeat_begin(heartbeat, CALLBACK_POSTED, post->handle->index);
    post->run(post->handle, post->work);
    worker_check_fork(worker);
    heartbeat_end(heartbeat);
    memory_release(worker->stream.net.memory, post);
}

static void run_posts(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct posts *posts = &worker->posts;
    struct post *post;
    unsigned n = posts->n;

    assert(source == posts->source && n > 0);
    (void)source;
    for (; n > 0; n--) {
        post = STAILQ_FIRST(&posts->list);
        STAILQ_REMOVE_HEAD(&posts->list, link);
        posts->n--;
        run_post(worker, post);
    }
    net_flush(&worker->stream.net);
}

static const struct source_ops post_ops = { .run = { [EVENT_READ] = run_posts } };

int posts_add(struct fb_worker *handle, void (*run)(struct fb_worker *handle, void *work),
    const void *work, size_t n)
{
    struct worker *worker = worker_of(handle);
    struct loop *loop = &worker->stream.net.loop;
    struct posts *posts = &worker->posts;
    struct post *post;

    assert(run != NULL);
    if (posts->source == NULL) {
        STAILQ_INIT(&posts->list);
        posts->source = loop_make_own(loop, QUEUE_NORMAL, &post_ops);
    }
    if (posts->source == NULL || n > SIZE_MAX / 2)
        return -1;
    post = memory_alloc(worker->stream.net.memory, sizeof(*post) + n);
    if (post == NULL)
        return -1;
    post->handle = handle;
    post->run = run;
    post->work = n > 0 ? post->bytes : NULL;
    if (n > 0)
        memcpy(post->bytes, work, n);
    STAILQ_INSERT_TAIL(&posts->list, post, link);
    posts->n++;
    loop_post(loop, &posts->source->events[EVENT_READ], QUEUE_NEXT);
    return 0;
}

void posts_done(struct worker *worker)
{
    struct posts *posts = &worker->posts;
    struct post *post;

    assert(worker->phase == WORKER_ENDING);
    if (posts->source == NULL)
        return;
    while ((post = STAILQ_FIRST(&posts->list)) != NULL) {
        STAILQ_REMOVE_HEAD(&posts->list, link);
        posts->n--;
        memory_release(worker->stream.net.memory, post);
    }
    assert(posts->n == 0);
    source_close(&worker->stream.net.loop, posts->source, false);
    posts->source = NULL;
}
