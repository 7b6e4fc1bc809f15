# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # shared with who sources this
# Sourced by the measurements: what each row measures. `role` is what the server does, `options`
# the load, `backend_role` what stands behind a relay, `few` and `many` the operations of the two
# runs whose difference is counted, `peers` the servers that can do it, `measures` what is
# measured: time (CPU time and latency), instructions, calls (system calls), which are in the table
# of both.

rows='echo-64x1 echo-64x64 echo-64x1000 echo-64x64p16 echo-16kx1 echo-rate
    conn-return conn-msg conn-rate relay-msg relay-conn relay-bulk'
mechanism_rows='echo-64x1 echo-64x64 echo-16kx1 conn-return relay-msg relay-conn'

row_of() {
    backend_role=""
    peers='forkbeard limit nginx libevent libuv' measures=time few=1000 many=5000
    case $1 in
    echo-64x1)
        role=echo options='-k echo' measures='time instructions calls'
        what='64 bytes echoed, 1 connection'
        ;;
    echo-64x64)
        role=echo options='-k echo -c 64' measures='time instructions' few=6400 many=32000
        what='64 bytes echoed, 64 connections'
        ;;
    echo-64x1000) role=echo options='-k echo -c 1000' what='64 bytes echoed, 1,000 connections' ;;
    echo-64x64p16)
        role=echo options='-k echo -c 64 -d 16' measures='time instructions' few=16000 many=80000
        what='64 bytes echoed, 64 connections with 16 messages under way each'
        ;;
    echo-16kx1) role=echo options='-k echo -s 16384' what='16 KiB echoed, 1 connection' ;;
    echo-rate)
        role=echo options='-k echo -c 64 -r 20000'
        what='64 bytes echoed 20,000 times a second on 64 connections, at fixed times'
        ;;
    conn-return)
        role=return options='-k return' few=200 many=1200 peers='forkbeard limit nginx'
        measures='time instructions calls' what='connect, read a line until the server closes'
        ;;
    conn-msg)
        role=echo options='-k message -c 16' few=400 many=2400 measures='time instructions'
        what='connect, 64 bytes echoed, close; 16 clients'
        ;;
    conn-rate)
        role=echo options='-k message -c 256 -r 2000'
        what='the same 2,000 times a second, at fixed times'
        ;;
    relay-msg)
        role=relay options='-k echo -c 64' few=6400 many=32000 backend_role=echo
        peers='forkbeard forkbeard-group limit limit-splice nginx nginx-group haproxy'
        measures='time instructions calls'
        what='64 bytes echoed through a proxy, 64 connections'
        ;;
    relay-conn)
        role=relay options='-k message -c 16' few=400 many=2400 backend_role=echo
        peers='forkbeard forkbeard-group limit limit-splice nginx nginx-group haproxy'
        measures='time instructions calls'
        what='connect through a proxy, 64 bytes echoed, close; 16 clients'
        ;;
    relay-bulk)
        role=relay options='-k bulk -s 65536' backend_role=source
        peers='forkbeard limit limit-splice nginx haproxy haproxy-splice'
        what='64 KiB of a long download through a proxy'
        ;;
    *) refuse "there is no row \"$1\"" ;;
    esac
}

# record MEASURE ROW PEER VALUE ...: for the report of bench/run
record() {
    [ -z "${BENCH_DATA-}" ] || echo "$*" >>"$BENCH_DATA"
}

# start_behind PEER: the row's server, and what stands behind it, below $wrap; fails if there is
# none
start_behind() {
    backend_server=""
    backend=""
    if [ -n "$backend_role" ]; then
        wrapped=${wrap-}
        wrap=""
        start limit "$backend_role" || return 1
        backend=$port backend_server=$server wrap=$wrapped
    fi
    start "$1" "$role" && return
    stop_behind
    return 1
}

stop_behind() {
    [ -z "$backend_server" ] || stop_server "$backend_server"
}

# print_line WORD ...: a line of a table of plain text
print_line() {
    printf '%-15s' "$1"
    shift
    [ $# = 0 ] || printf '%15s' "$@"
    echo
}
