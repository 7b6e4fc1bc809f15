/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets attributes by prctl(). Some are undone by a change of the user, and are set after it. */
#include "process/attributes.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void process_allow_dumps(struct log *log)
{
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == -1)
        log_write(log, LEVEL_ALERT, errno, "prctl(PR_SET_DUMPABLE) failed");
}

void process_keep_capabilities(struct log *log)
{
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == -1)
        log_write(log, LEVEL_ALERT, errno, "prctl(PR_SET_KEEPCAPS) failed");
}

void process_take_net_raw(struct log *log)
{
    static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = {
        [CAP_TO_INDEX(CAP_NET_RAW)] = { .effective = CAP_TO_MASK(CAP_NET_RAW),
            .permitted = CAP_TO_MASK(CAP_NET_RAW) },
    };

    if (syscall(SYS_capset, &header, kept) == 0)
        return;
    log_write(log, LEVEL_ALERT, errno,
        "capset() failed: workers cannot connect from addresses of others");
    syscall(SYS_capset, &header, none);
}

int process_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void process_end_with_parent(unsigned seconds)
{
    (void)seconds;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}
