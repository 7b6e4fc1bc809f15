# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC3045 # shared; dash and bash have ulimit -n
# Sourced by the measurements: starts servers of a kind on ports of their own, each within
# $directory, which bench_begin makes and bench_end removes, with all processes that were started.
# $build is the build directory, $programs the place of the load generator and the limit servers.

programs=${PROGRAMS:-$build/bench}
forkbeard=$build/src/forkbeard
nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx || :)
haproxy=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v haproxy || :)
started=
next_port=${PORT:-17000}

refuse() {
    echo "${0##*/}: $*" >&2
    exit 1
}

bench_begin() {
    [ -x "$forkbeard" ] || refuse "there is no $forkbeard: give a build directory"
    [ -x "$programs/load" ] || refuse "there is no $programs/load: run \"make bench-programs\""
    directory=$(mktemp -d)
    chmod 755 "$directory"
    trap bench_end EXIT
    trap 'exit 1' HUP INT TERM
}

bench_end() {
    trap - EXIT
    for pid in $started; do
        kill -TERM "$pid" 2>/dev/null || :
    done
    for pid in $started; do
        ! is_alive "$pid" 100 || kill -KILL "$pid" 2>/dev/null || :
    done
    rm -rf "$directory"
}

# is_alive PID TENTHS: waits for its end as long
is_alive() {
    tenths=$2
    while kill -0 "$1" 2>/dev/null; do
        # A zombie is a child of ours that wait has not been called for.
        case $(awk '/^State:/ { print $2 }' "/proc/$1/status" 2>/dev/null) in
        '' | Z) return 1 ;;
        esac
        [ "$tenths" -gt 0 ] || return 0
        tenths=$((tenths - 1))
        sleep 0.1
    done
    return 1
}

# A port that nothing listens on: numbers below the range of the kernel's own choice.
choose_port() {
    while :; do
        next_port=$((next_port + 1))
        hex=$(printf '%04X' "$next_port")
        grep -q "^ *[0-9]*: [0-9A-F]*:$hex 00000000:0000 0A" /proc/net/tcp || break
    done
    port=$next_port
}

# await_port PORT PID LOG: until it is listened on, which takes a while under valgrind; fails with
# the server
await_port() {
    hex=$(printf '%04X' "$1")
    left=300
    until grep -q "^ *[0-9]*: [0-9A-F]*:$hex 00000000:0000 0A" /proc/net/tcp; do
        left=$((left - 1))
        if [ "$left" = 0 ] || ! is_alive "$2" 0; then
            cat "$3" >&2
            echo "${0##*/}: a server did not start" >&2
            return 1
        fi
        sleep 0.1
    done
}

# launch COMMAND ...: in the background, on $cpus if that is set, below $wrap if that is; sets
# $server
launch() {
    log=$directory/$port.said
    # shellcheck disable=SC2086 # lists of words
    ${cpus:+taskset -c $cpus} ${wrap-} "$@" >"$log" 2>&1 </dev/null &
    server=$!
    started="$started $server"
    await_port "$port" "$server" "$log" && return
    stop_server "$server"
    return 1
}

# stop_server PID: ends it, and waits. A signal that comes between nginx's look at its flags and its
# wait is not seen, so that it is sent again.
stop_server() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -TERM "$1" 2>/dev/null || break
        is_alive "$1" 10 || break
    done
    ! is_alive "$1" 0 || kill -KILL "$1" 2>/dev/null || :
    wait "$1" 2>/dev/null || :
    started=$(echo " $started " | sed "s/ $1 / /")
}

# How the daemons run: one process where $workers is 0.
processes() {
    if [ "${workers:-1}" = 0 ]; then
        echo "master_process off;"
    else
        echo "worker_processes ${workers:-1};"
    fi
}

# group: the upstream block of who proxies to one: two servers, whose state is in a zone
group() {
    echo "upstream group { zone group 64k; server 127.0.0.1:$backend; " \
        "server 127.0.0.2:$backend backup; }"
}

# start_in_group PEER ROLE: the proxy PEER, to a group
start_in_group() {
    [ "$2" = relay ] || return 1
    group=$(group) target=group
    "start_$1" "$2" && status=0 || status=1
    group='' target=''
    return "$status"
}

start_forkbeard_group() {
    start_in_group forkbeard "$1"
}

start_nginx_group() {
    start_in_group nginx "$1"
}

# start_forkbeard ROLE: with $main, $events and $server_lines as further directives
start_forkbeard() {
    case $1 in
    echo) handler='echo;' ;;
    return) handler='return hello\n;' ;;
    relay) handler="proxy_pass ${target:-127.0.0.1:$backend};" ;;
    *) return 1 ;;
    esac
    cat >"$directory/$port.conf" <<END
daemon off;
$(processes)
pid $directory/$port.pid;
error_log $directory/$port.log ${log_level-};
worker_rlimit_nofile $(ulimit -n);
worker_shutdown_timeout 1s;
${main-}
events { worker_connections ${connections:-4096}; ${events-} }
stream { ${group-} server { listen 127.0.0.1:$port${listen_options-}; ${server_lines-} $handler } }
END
    launch "$forkbeard" -c "$directory/$port.conf"
}

# start_limit ROLE
start_limit() {
    case $1 in
    echo) launch "$programs/limit_echo" "$port" ;;
    return) launch "$programs/limit_return" "$port" ;;
    relay) launch "$programs/limit_proxy" "$port" "$backend" ;;
    source | sink) launch "$programs/limit_$1" "$port" ;;
    *) return 1 ;;
    esac
}

start_limit_splice() {
    [ "$1" = relay ] || return 1
    launch "$programs/limit_proxy" "$port" "$backend" splice
}

# nginx has no echo of its own: bench/nginx_echo is one, where it could be built.
start_nginx() {
    [ -n "$nginx" ] || return 1
    modules=
    case $1 in
    echo)
        [ -f "$programs/nginx_echo_module.so" ] || return 1
        handler='echo;' modules="load_module $programs/nginx_echo_module.so;"
        ;;
    return) handler='return "hello\n";' ;;
    relay) handler="proxy_pass ${target:-127.0.0.1:$backend};" ;;
    *) return 1 ;;
    esac
    stream=$(find /usr/lib/nginx/modules -name ngx_stream_module.so 2>/dev/null || :)
    mkdir -p "$directory/$port.nginx"
    cat >"$directory/$port.conf" <<END
${stream:+load_module $stream;}
$modules
daemon off;
$(processes)
pid $directory/$port.pid;
error_log $directory/$port.log;
worker_rlimit_nofile $(ulimit -n);
events { worker_connections ${connections:-4096}; ${events-} }
stream { ${group-} server { listen 127.0.0.1:$port${listen_options-}; ${server_lines-} $handler } }
END
    launch "$nginx" -p "$directory/$port.nginx" -c "$directory/$port.conf" -e "$directory/$port.log"
}

# start_haproxy ROLE
start_haproxy() {
    [ -n "$haproxy" ] && [ "$1" = relay ] || return 1
    cat >"$directory/$port.conf" <<END
global
    nbthread 1
    maxconn ${connections:-4096}
defaults
    mode tcp
    timeout connect 10s
    timeout client 10m
    timeout server 10m
    ${splice-}
listen relay
    bind 127.0.0.1:$port ${bind_options-}
    server backend 127.0.0.1:$backend
END
    launch "$haproxy" -db -f "$directory/$port.conf"
}

start_haproxy_splice() {
    splice='option splice-auto'
    start_haproxy "$1" || {
        splice=
        return 1
    }
    splice=
}

# start_libevent ROLE, start_libuv ROLE: programs that are there where the library is
start_libevent() {
    [ "$1" = echo ] && [ -x "$programs/libevent_echo" ] || return 1
    launch "$programs/libevent_echo" "$port"
}

start_libuv() {
    [ "$1" = echo ] && [ -x "$programs/libuv_echo" ] || return 1
    launch "$programs/libuv_echo" "$port"
}

# mechanisms_of BUILD: the event mechanisms that its forkbeard has
mechanisms_of() {
    "$1/src/forkbeard" -V 2>&1 | sed -n 's/^event mechanisms: //p'
}

# start_under MECHANISM ROLE: forkbeard under it; fails where the kernel refuses it
start_under() {
    events="use $1;" log_level=notice
    start_forkbeard "$2" || return 1
    grep -q "the kernel refuses \"$1\"" "$directory/$port.log" || return 0
    stop_server "$server"
    return 1
}

# start_shim MECHANISM ROLE: forkbeard of the build directory $shims, whose calls of another
# system's mechanism tests/shims makes
start_shim() {
    own=$forkbeard
    forkbeard=${shims:-$build}/src/forkbeard
    start_under "$@" || {
        forkbeard=$own
        return 1
    }
    forkbeard=$own
}

# start PEER ROLE: sets $server and $port; fails if the peer has no such role here. under-MECHANISM
# and shim-MECHANISM are forkbeard.
start() {
    choose_port
    case $1 in
    under-* | shim-*) "start_${1%%-*}" "${1#*-}" "$2" ;;
    *) "start_$(echo "$1" | tr - _)" "$2" ;;
    esac
}

# The limit of descriptors as high as it may be: a server's and the load's.
raise_limit() {
    ulimit -n "$(ulimit -Hn)"
}

# place_processes: sets $server_cpus, $load_cpus, $backend_cpus and $load_processes by the
# processors that we may use; empty where there is but one
place_processes() {
    load_processes=1
    server_cpus=
    load_cpus=
    backend_cpus=
    # shellcheck disable=SC2046 # a list of words
    set -- $(awk '/^Cpus_allowed_list:/ {
        n = split($2, range, ",")
        for (i = 1; i <= n; i++) {
            k = split(range[i], end, "-")
            for (j = end[1]; j <= end[k]; j++)
                print j
        }
    }' /proc/self/status)
    command -v taskset >/dev/null || return 0
    case $# in
    1) ;;
    2) server_cpus=$1 load_cpus=$2 backend_cpus=$2 ;;
    3) server_cpus=$1 load_cpus=$2 backend_cpus=$3 ;;
    *) server_cpus=$1 load_cpus=$2,$3 backend_cpus=$4 load_processes=2 ;;
    esac
}
