# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The daemon takes the examples as they are, and with all that is commented out in them but the
# module, which is only a name, and the directives of mechanisms that were not built in. The
# directories of logs and of the pid file, which are only there once it is installed, are another one.

# Patterns of the directives that only mechanisms which this binary lacks have or are named by, and of
# what the posix flavour refuses, each after a bar.
absent_directives() {
    src/forkbeard -V 2>&1 | grep -q '^system: posix' && printf '|worker_cpu_affinity'
    src/forkbeard -V 2>&1 | grep -q '^libraries that it lacks:.*OpenSSL' && printf '|ssl_(p[ar]|[^p])[a-z_]*|proxy_ssl[a-z_]*'
    built=$(src/forkbeard -V 2>&1 | sed -n 's/^event mechanisms: //p')
    for file in "$src"/src/event/mechanisms/*.c; do
        mechanism=$(basename "$file" .c)
        case " $built " in *" $mechanism "*) ;; *) printf '|%s_[a-z]+|use +%s;' "$mechanism" "$mechanism" ;; esac
    done
}

check_examples() {
    made=$(mktemp -d "${TMPDIR:-/tmp}/fb_lint.XXXXXX") || return
    left_out="load_module|(proxy_)?ssl_crl|ssl_dhparam$(absent_directives)"
    sed -E "/^ *# *($left_out) /!"'s/^( *)#( *(\}|[a-z_]+.*[;{])( *#.*)?)$/\1\2/' \
        conf/forkbeard.conf.default >"$made/all"
    cmp -s "$made/all" conf/forkbeard.conf.default && echo "$made/all: nothing was commented out"
    sed -E "s|/[^ ;]*/(forkbeard\.pid\|forkbeard\.sock\|forkbeard_read\.sock\|error\.log)|$made/\1|" "$made/all" >"$made/conf"
    # files for TLS
    src/forkbeard certificate --self-signed cert --out "$made" >"$made/passwords" 2>/dev/null &&
        cp "$made/cert.crt" "$made/ca.crt" && head -c 80 /dev/urandom >"$made/ticket.key" &&
        src/forkbeard certificate --self-signed localhost --out "$made" >/dev/null &&
        cp "$src/conf/tls.conf" "$made"
    for example in "$src/conf/try.conf" "$src/conf/balance.conf" "$made/conf" "$made"/tls.con[f]; do
        [ ! -e "$example" ] || said=$(src/forkbeard -t -q -c "$example" 2>&1) || echo "$said"
    done
    said=$(src/forkbeard -t -q -e stderr -g "pid $made/forkbeard.pid;" \
        -c conf/forkbeard.conf.default 2>&1) || echo "$said"
    rm -rf "$made"
    # the image of a container has every library that configure can use
    for package in $(sed -n 's/.*[[ ]\([a-z0-9-]*-dev\)\].*/\1/p' "$src/configure.ac"); do
        grep -q "[ ]$package " "$src/examples/container/Containerfile" ||
            echo "examples/container/Containerfile: does not install $package"
    done
}
