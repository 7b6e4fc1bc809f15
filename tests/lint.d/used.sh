# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Each function of the SDK is called by a test, or by an example that tests run.

check_used() {
    sdk=$(sdk_functions)

    [ -n "$sdk" ] || echo "$src/src/include/forkbeard: no FB_SDK function is found"
    for name in $sdk; do
        find "$src/tests" -name '*.[ch]' -exec grep -q "\<$name(" {} + ||
            echo "$src/src/include/forkbeard: no test calls $name()"
    done
}
