// SPDX-License-Identifier: BSD-2-Clause
// A protocol in C++17, which says in capitals what the client says: with a state that has a
// constructor, a directive with a value, a metric, frames and options.
#include <forkbeard/forkbeard.h>

#include <cctype>
#include <cstddef>
#include <new>
#include <string>

namespace {

struct session {
    std::string last;
};

struct conf {
    int64_t most;
};

int upper_opened(fb_conn *, void *state)
{
    new (state) session;
    return 0;
}

size_t upper_data(fb_conn *conn, void *state, fb_bytes in)
{
    auto *own = static_cast<session *>(state);
    auto *values = static_cast<const conf *>(fb_conf_of(conn));
    const auto limit = fb_define<fb_frame_limit>(
        [=](fb_frame_limit &l) { l.most = static_cast<size_t>(values->most); });
    fb_bytes rest = in, line;

    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line)) {
        own->last.assign(reinterpret_cast<const char *>(line.p), line.n);
        for (char &c : own->last)
            c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        own->last += '\n';
        fb_write(conn, own->last.data(), own->last.size());
        fb_metric_add(conn, 0, 1);
    }
    return in.n - rest.n;
}

void upper_closed(fb_conn *, void *state, fb_reason)
{
    static_cast<session *>(state)->~session();
}

constexpr fb_ops ops = fb_define<fb_ops>([](fb_ops &o) {
    o.opened = upper_opened;
    o.data = upper_data;
    o.closed = upper_closed;
});

constexpr fb_directive directives[] = {
    fb_define<fb_directive>([](fb_directive &d) {
        d.name = "cxx_upper";
        d.flags = FB_DIRECTIVE_HANDLER;
    }),
    fb_define<fb_directive>([](fb_directive &d) {
        d.name = "cxx_upper_most";
        d.value = FB_VALUE_SIZE;
        d.offset = offsetof(conf, most);
        d.initial = "1k";
    }),
};

constexpr fb_metric metrics[] = {
    fb_define<fb_metric>([](fb_metric &m) { m.name = "lines"; }),
};

} // namespace

FB_PROTOCOL(cxx_upper) = fb_define<fb_protocol>([](fb_protocol &p) {
    p.name = "cxx_upper";
    fb_define_directives(p, directives);
    fb_define_metrics(p, metrics);
    p.conn_state = sizeof(session);
    p.conf_state = sizeof(conf);
    p.ops = &ops;
});
