# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Each function of the SDK is called, and each callback is set, by a test, or by an example that tests
# run; and by an example or a protocol of the daemon, where an author sees what it is for.

# What an example need not have, and why.
without_example='
    fb_flush           # for a callback that takes long, which an example should not show
    fb_frame_prefixed  # fb_frame_counted() does the same, and more
    fb_make_target     # fb_connect_with() takes addresses
    fb_run             # fb_run_in() does the same, and more
    fb_shutdown        # a server seldom ends its half alone; fb_pipe() does where it should
'

# callbacks STRUCT: the callbacks of a struct of the SDK
callbacks() {
    awk -v name="$1" '
    $0 == "typedef struct " name " {" {
        within = 1
    }
    $0 == "} " name ";" {
        within = 0
    }
    within && /^    [a-z]/ && match($0, /\(\*[a-z_]+\)/) {
        print substr($0, RSTART + 2, RLENGTH - 3)
    }' "$src/src/include/forkbeard/protocol.h"
}

# uses FOLDER ...: the calls of the C files there, as "NAME(", and the callbacks that are set, as
# ".NAME = x"
uses() {
    c_files "$@" | xargs grep -hoE '\<fb_[a-z0-9_]+\(|\.[a-z0-9_]+ = [a-z]' | sed 's/= [a-z]$/= x/' | sort -u
}

check_used() {
    sdk=$(sdk_functions)
    header=$src/src/include/forkbeard
    exceptions=$(echo "$without_example" | sed -n 's/^ *\([a-z_]*\).*#.*/\1/p')

    tests=$(uses tests)
    examples=$(uses examples src/protocols)

    [ -n "$sdk" ] || echo "$header: no FB_SDK function is found"
    for name in $sdk; do
        among "$name(" "$tests" || echo "$header: no test calls $name()"
        among "$name" "$exceptions" || among "$name(" "$examples" ||
            echo "$header: no example and no protocol calls $name()"
    done
    for struct in fb_protocol fb_ops fb_worker_ops; do
        for name in $(callbacks $struct); do
            among ".$name = x" "$tests" || echo "$header: no test sets .$name of $struct"
            among ".$name = x" "$examples" ||
                echo "$header: no example and no protocol sets .$name of $struct"
        done
    done
    for name in $exceptions; do
        among "$name" "$sdk" || echo "$here/lint.d/used.sh: there is no function \"$name\""
    done
}
