#!/usr/bin/env bash
# Builds the image with buildah, and runs it with podman as a user whom it doesn't know, on a root that can't be written to.
#
# The base is made of Debian's packages, because that needs no registry; BASE=… names another one. Needs root, buildah,
# podman, runc and mmdebstrap. FOLDER keeps what was made; without it everything is removed at the end.
set -euo pipefail
cd "$(dirname "$0")/../../.."

folder=${FOLDER:-$(mktemp -d)}
port=${PORT:-18099}
stored=(--root "$folder/store" --runroot "$folder/run" --storage-driver overlay)
quiet() { grep -v -e 'CNI config' -e '^$' >&2 || true; }
builder() { BUILDAH_ISOLATION=chroot buildah "${stored[@]}" "$@" 2> >(quiet); }
engine() { DISABLE_HC_SYSTEMD=true podman --runtime "${RUNTIME:-runc}" "${stored[@]}" --cgroup-manager cgroupfs "$@" 2> >(quiet); }
finish() {
    engine rm --force trial >/dev/null || true
    engine volume rm --force trial >/dev/null || true
    if [ -z "${FOLDER:-}" ]; then
        builder rmi --all --force >/dev/null || true
        umount --lazy "$folder"/store/overlay 2>/dev/null || true
        rm -rf "$folder"
    fi
}
trap finish EXIT
say() { printf '%s\n' "-- $*"; }
fail() { say "FAILED: $*"; exit 1; }

base=${BASE:-localhost/debian-python:bookworm}
if [ -z "${BASE:-}" ] && ! builder inspect "$base" >/dev/null 2>&1; then
    say "a base of Debian's packages"
    [ -s "$folder/base.tar" ] || mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates \
        bookworm "$folder/base.tar" "${APT_SOURCES:-/etc/apt/sources.list.d/debian.sources}"
    made=$(builder from scratch)
    builder add --quiet "$made" "$folder/base.tar" / >/dev/null
    builder commit --quiet "$made" "$base" >/dev/null
    builder rm "$made" >/dev/null
fi

say "the image"
mirrors=()
for path in /etc/pip.conf /opt/pypi /opt/pypi-more /opt/wheels /etc/ssl/certs; do
    # Where this machine installs from, the build does too.
    [ -e "$path" ] && mirrors+=(--volume "$path:$path:ro")
done
builder build --quiet --network host --format docker -f deploy/image/Dockerfile \
    --ignorefile deploy/image/Dockerfile.dockerignore --build-arg "BASE=$base" "${mirrors[@]}" -t localhost/payrelay:trial . \
    >/dev/null

say "a start as user 23456, with a root that can't be written to"
engine run --detach --name trial --network host --ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit "nproc=1000:1000" --read-only --cap-drop ALL \
    --security-opt no-new-privileges --user 23456:0 --tmpfs /tmp:size=16m --volume trial:/var/lib/payrelay \
    -e PAYRELAY_HOST=127.0.0.1 -e "PAYRELAY_PORT=$port" \
    -e PAYRELAY_GATEWAYS__GATEWAY__APP_ID=trial -e PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET=trial \
    localhost/payrelay:trial >/dev/null
engine exec trial payrelay health --wait 30 || { engine logs trial; fail "it is not ready"; }
engine healthcheck run trial || fail "the health check of the image"
[ "$(engine exec trial id -u)" = 23456 ] || fail "it runs as another user"
if engine exec trial touch /opt/payrelay/x 2>/dev/null; then fail "it can write beside its data"; fi
engine exec trial test -f /var/lib/payrelay/payrelay.db || fail "the database is not where it is mounted"
engine exec trial cat /opt/payrelay/sbom.cdx.json | python3 -c '
import json, sys
parts = {part["name"].lower() for part in json.load(sys.stdin)["components"]}
assert {"payrelay", "granian", "asyncpg"} <= parts, parts
print(len(parts), "parts are listed")'
if engine exec trial sh -c 'command -v pip || command -v hatchling'; then fail "it holds tools that install more"; fi

say "a stop"
engine stop --time 30 trial >/dev/null
[ "$(engine inspect trial --format '{{.State.ExitCode}}')" = 0 ] || fail "it did not end by itself"
say "done: $(engine image inspect localhost/payrelay:trial --format '{{.Size}}') bytes, $(engine image inspect "$base" --format '{{.Size}}') of them the base"
