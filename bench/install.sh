#!/bin/sh
# Installs what the bench drives, where it is missing: wrk, nginx with Lua, PostgreSQL's server programs.
set -eu
packages=""
command -v wrk >/dev/null 2>&1 || packages="$packages wrk"
[ -x /usr/sbin/nginx ] || packages="$packages nginx-light"
[ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || packages="$packages libnginx-mod-http-lua"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages="$packages postgresql"
[ -n "$packages" ] || exit 0
echo "bench: installing$packages" >&2
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
$as_root apt-get update -qq
# The bench starts its own servers with its own configuration; Debian's must not be started on port 80 beside them.
# shellcheck disable=SC2086 # the list is meant to be split
$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $packages
