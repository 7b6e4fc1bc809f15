# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by the script of tests/uml/kernel_tls, which sets SOURCE
# Runs within a User-Mode Linux: files and pipes over TLS by the kernel, to quick and slow clients, with little and
# much room in sockets. What arrives is compared, and the kernel's own counters say who has encrypted.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL

fail() {
    echo "$*"
    tail -n 30 log begun
    exit 1
}

# shellcheck source=tests/support/wait.sh
. "$SOURCE/../support/wait.sh"

# counted NAME: the kernel's counter
counted() {
    awk -v name="$1" '$1 == name { print $2 }' /proc/net/tls_stat
}

# write_conf METHOD: servers of a file and of a pipe: as the system has them; with a send buffer that is too small
# for the kernel's TLS; with one that a record and a segment just fit in; without the option
write_conf() {
    cat <<END
user nobody; daemon off; pid pid; error_log log info; worker_processes 2; sandbox on;
events { use $1; }
stream {
    ssl_certificate pem; ssl_certificate_key key; ssl_conf_command Options KTLS;
    server { listen 127.0.0.1:7001 ssl; file big; }
    server { listen 127.0.0.1:7002 ssl; proxy_pass 127.0.0.1:7000; }
    server { listen 127.0.0.1:7003 ssl sndbuf=8k; file big; }
    server { listen 127.0.0.1:7004 ssl sndbuf=8k; proxy_pass 127.0.0.1:7000; }
    server { listen 127.0.0.1:7005 ssl sndbuf=64k; file big; }
    server { listen 127.0.0.1:7006 ssl sndbuf=64k; proxy_pass 127.0.0.1:7000; }
    server { listen 127.0.0.1:7007 ssl; ssl_conf_command Options -KTLS; file big; }
    server { listen 127.0.0.1:7008 ssl; file little; }
    server { listen 127.0.0.1:7000; file big; }
}
END
}

# fetch PORT FILE ARGUMENT ...: whether the file arrives, and the end of TLS behind it
fetch() {
    port=$1 file=$2
    shift 2
    timeout 100 openssl s_client -connect "127.0.0.1:$port" -quiet -ign_eof "$@" 2>"client.$port" </dev/null |
        { sleep "$pause" && cmp - "$file"; }
}

quick() {
    pause=0
    before=$(counted TlsTxSw)
    fetch "$@" || fail "$*: not what was sent: $(cat "client.$1")"
    [ "$(counted TlsTxSw)" -gt "$before" ] || fail "$*: the kernel has not encrypted"
}

spared() {
    pause=0
    before=$(counted TlsTxSw)
    fetch "$@" || fail "$*: not what was sent: $(cat "client.$1")"
    [ "$(counted TlsTxSw)" -eq "$before" ] || fail "$*: the kernel has encrypted"
}

# All at once, so that their waits are one.
slow() {
    pause=2 clients=""
    for port in 7001 7002 7003 7004 7005 7006; do
        for version in tls1_2 tls1_3; do
            (fetch $port big -$version >"slow.$port.$version" 2>&1) &
            clients="$clients $!:$port:$version"
        done
    done
    for client in $clients; do
        wait "${client%%:*}" || fail "slow client $client: not what was sent"
    done
}

try_method() {
    : >log
    write_conf "$1" >conf
    "$FORKBEARD" -p . -c conf >>begun 2>&1 &
    daemon=$!
    eventually grep -q 'generation 1 serves' log
    for port in 7001 7002; do
        for suite in AES_128_GCM_SHA256 AES_256_GCM_SHA384 CHACHA20_POLY1305_SHA256; do
            quick "$port" big -tls1_3 -ciphersuites TLS_$suite
        done
        for suite in AES128-GCM-SHA256 AES256-GCM-SHA384 CHACHA20-POLY1305; do
            quick "$port" big -tls1_2 -cipher ECDHE-ECDSA-$suite
        done
    done
    spared 7003 big
    spared 7004 big
    spared 7007 big
    spared 7008 little
    slow
    kill -QUIT $daemon
    wait $daemon || fail "the daemon has ended with $?"
    ! grep -E '\[(warn|alert|crit|emerg)\]|does not seal|killed' log || fail "$1: the log has these lines"
    [ "$(counted TlsCurrTxSw)" -eq 0 ] || fail "$1: sessions of the kernel are left"
    [ "$(counted TlsRxSw)" -eq 0 ] || fail "$1: the kernel has decrypted"
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 60 -subj /CN=uml -keyout key -out pem \
    2>begun || fail "no certificate"
head -c 12345678 /dev/urandom >big
head -c 200000 big >little
for method in epoll poll; do
    try_method $method
    echo "$method: by the kernel: $(counted TlsTxSw) sessions in all"
done
