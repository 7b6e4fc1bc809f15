# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Each file of src/ opens with its contract, a comment below the SPDX line.

check_contracts() {
    c_files src | xargs awk '
    FNR == 1 {
        done = 0
        next
    }
    done || /^$/ {
        next
    }
    {
        done = 1
        if ($0 !~ /^\/\*/)
            printf "%s:%d: the file does not open with its contract\n", FILENAME, FNR
    }'
}
