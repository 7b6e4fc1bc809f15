# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced by the measurements: starts servers of a kind on ports of their own, each within $directory,
# which bench_begin makes and bench_end removes, with all processes that were started. $build is the
# build directory, $programs the place of the load generator and the limit servers.

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
    left=$2
    while kill -0 "$1" 2>/dev/null; do
        # A zombie is a child of ours that wait has not been called for.
        case $(awk '/^State:/ { print $2 }' "/proc/$1/status" 2>/dev/null) in
        '' | Z) return 1 ;;
        esac
        [ "$left" -gt 0 ] || return 0
        left=$((left - 1))
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

# await_port PORT PID LOG: until it is listened on; valgrind takes a while
await_port() {
    hex=$(printf '%04X' "$1")
    left=300
    until grep -q "^ *[0-9]*: [0-9A-F]*:$hex 00000000:0000 0A" /proc/net/tcp; do
        left=$((left - 1))
        if [ "$left" = 0 ] || ! is_alive "$2" 0; then
            cat "$3" >&2
            refuse "a server did not start"
        fi
        sleep 0.1
    done
}

# launch COMMAND ...: in the background, on $cpus if that is set, below $wrap if that is; sets $server
launch() {
    log=$directory/$port.said
    # shellcheck disable=SC2086 # lists of words
    ${cpus:+taskset -c $cpus} ${wrap-} "$@" >"$log" 2>&1 </dev/null &
    server=$!
    started="$started $server"
    await_port "$port" "$server" "$log"
}

# stop_server PID: ends it, and waits
stop_server() {
    kill -TERM "$1" 2>/dev/null || :
    ! is_alive "$1" 100 || kill -KILL "$1" 2>/dev/null || :
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

# start_forkbeard ROLE: with $main and $events as further directives
start_forkbeard() {
    case $1 in
    echo) handler='echo;' modules= ;;
    return) handler='return hello\n;' modules= ;;
    relay | relay-*)
        relay_module=$build/examples/relay/.libs/relay.so
        [ -f "$relay_module" ] || return 1
        handler="relay 127.0.0.1:$backend;" modules="load_module $relay_module;"
        ;;
    *) return 1 ;;
    esac
    cat >"$directory/$port.conf" <<END
$modules
daemon off;
$(processes)
pid $directory/$port.pid;
error_log $directory/$port.log;
worker_rlimit_nofile $(ulimit -Hn);
worker_shutdown_timeout 1s;
${main-}
events { worker_connections ${connections:-4096}; ${events-} }
stream { server { listen 127.0.0.1:$port${listen_options-}; $handler } }
END
    launch "$forkbeard" -c "$directory/$port.conf"
}

# start_limit ROLE
start_limit() {
    case $1 in
    echo) launch "$programs/limit_echo" "$port" ;;
    return) launch "$programs/limit_return" "$port" ;;
    relay) launch "$programs/limit_proxy" "$port" "$backend" ;;
    relay-splice) launch "$programs/limit_proxy" "$port" "$backend" splice ;;
    source) launch "$programs/limit_source" "$port" ;;
    *) return 1 ;;
    esac
}

# nginx has no echo of its own: bench/nginx_echo.c is one, where `make bench-nginx` could build it.
start_nginx() {
    [ -n "$nginx" ] || return 1
    modules=
    case $1 in
    echo)
        [ -f "$programs/nginx_echo.so" ] || return 1
        handler='echo;' modules="load_module $programs/nginx_echo.so;"
        ;;
    return) handler='return "hello\n";' ;;
    relay) handler="proxy_pass 127.0.0.1:$backend;" ;;
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
worker_rlimit_nofile $(ulimit -Hn);
events { worker_connections ${connections:-4096}; ${events-} }
stream { server { listen 127.0.0.1:$port${listen_options-}; $handler } }
END
    launch "$nginx" -p "$directory/$port.nginx" -c "$directory/$port.conf" -e "$directory/$port.log"
}

# start_haproxy ROLE
start_haproxy() {
    [ -n "$haproxy" ] || return 1
    case $1 in
    relay) splice= ;;
    relay-splice) splice='option splice-auto' ;;
    *) return 1 ;;
    esac
    cat >"$directory/$port.conf" <<END
global
    nbthread 1
    maxconn ${connections:-4096}
defaults
    mode tcp
    timeout connect 10s
    timeout client 10m
    timeout server 10m
    $splice
listen relay
    bind 127.0.0.1:$port
    server backend 127.0.0.1:$backend
END
    launch "$haproxy" -db -f "$directory/$port.conf"
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

# start PEER ROLE: sets $server and $port; fails if the peer has no such role here
start() {
    choose_port
    "start_$1" "$2"
}
