#!/usr/bin/env bash
# Boots a Debian 12 with systemd in a container, and types what docs/production says for an installation by systemd.
#
# It runs the pages' own commands, with the gateway's simulator as the gateway and a certificate of its own. Needs root,
# systemd-nspawn and mmdebstrap. FOLDER keeps the root that was made; without it everything is removed at the end.
set -euo pipefail
cd "$(dirname "$0")/../../.."

folder=${FOLDER:-$(mktemp -d)}
root=$folder/machine
say() { printf '%s\n' "-- $*"; }
fail() { say "FAILED: $*"; exit 1; }
booted=
finish() {
    [ -z "$booted" ] || { kill "$booted" 2>/dev/null || true; wait "$booted" 2>/dev/null || true; }
    rm -rf "$root"
    [ -n "${FOLDER:-}" ] || rm -rf "$folder"
}
trap finish EXIT

if [ ! -s "$folder/machine.tar" ]; then
    say "a Debian, with what the pages install by apt-get"
    # Prometheus is installed here, because the machine has no network.
    mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,openssl,python3,python3-venv,ca-certificates,curl \
        --include=nginx-light,postgresql,prometheus,prometheus-alertmanager,prometheus-node-exporter,procps \
        bookworm "$folder/machine.tar" "${APT_SOURCES:-/etc/apt/sources.list.d/debian.sources}"
fi
rm -rf "$root"
mkdir "$root"
tar -xf "$folder/machine.tar" -C "$root" --exclude='./dev/*'
mkdir "$root/root/payrelay"
git ls-files --cached --others --exclude-standard deploy requirements src tools pyproject.toml hatch_build.py README.md LICENSE docs | tar -cf - -T - | tar -xf - -C "$root/root/payrelay"

say "the program, installed while there is a network"
mirrors=()
for path in /etc/pip.conf /opt/pypi /opt/pypi-more /opt/wheels /etc/ssl/certs; do
    [ -e "$path" ] && mirrors+=("--bind-ro=$path")
done
container=(systemd-nspawn --quiet --register=no --keep-unit -D "$root")
"${container[@]}" "${mirrors[@]}" /root/payrelay/deploy/image/install.sh /opt/payrelay-0.1.0 >/dev/null 2>&1 ||
    fail "install.sh"

say "the boot"
"${container[@]}" --private-network --boot >"$folder/boot.log" 2>&1 &
booted=$!
leader=
for _ in $(seq 60); do
    leader=$(pgrep -P "$booted" | head -n 1 || true)
    [ -n "$leader" ] && [ -S "$root/run/dbus/system_bus_socket" ] || { [ -n "$leader" ] && nsenter -t "$leader" -m test -S /run/dbus/system_bus_socket; } 2>/dev/null && break
    sleep 1
done
inside() {
    nsenter -t "$leader" -m -u -i -n -p env -i LANG=C.UTF-8 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
inside systemctl is-system-running --wait >/dev/null || true

# The commands of a chapter: its blocks of sh, which one shell runs.
chapter() {
    python3 - "$1" "$2" "${3:-}" <<'PYTHON'
import re, sys, textwrap
page, title, without = sys.argv[1:]
text = open(page).read().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
blocks = [textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)]
assert blocks, title
kept = [line for block in blocks for line in block.splitlines() if not line.startswith("apt-get ")]
print("\n".join(line for line in kept if not without or not re.search(without, line)))
PYTHON
}

gateway() { sed -n "s/^ *$1=\"\([^\"]*\)\".*/\1/p" src/payrelay_simulator/simulator.py | head -n 1; }
cat >"$folder/settings" <<END
set -eu
cd /root/payrelay
SITE=pay.example.com APP_ID=$(gateway app_id) MERCHANT_ID=$(gateway merchant_id)
APP_SECRET=$(gateway app_secret) MERCHANT_SECRET=$(gateway merchant_secret)
END
cat >"$folder/before" <<'END'
systemd-run --quiet --unit=simulator /opt/payrelay-0.1.0/bin/payrelay simulate
install -d /etc/ssl/payrelay
openssl req -quiet -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$SITE" -addext "subjectAltName=DNS:$SITE" \
    -keyout /etc/ssl/payrelay/privkey.pem -out /etc/ssl/payrelay/fullchain.pem 2>/dev/null ||
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$SITE" -addext "subjectAltName=DNS:$SITE" \
    -keyout /etc/ssl/payrelay/privkey.pem -out /etc/ssl/payrelay/fullchain.pem 2>/dev/null
cp /etc/ssl/payrelay/fullchain.pem /usr/local/share/ca-certificates/trial.crt
update-ca-certificates >/dev/null 2>&1
echo "127.0.0.1 $SITE" >>/etc/hosts
echo PAYRELAY_GATEWAYS__GATEWAY__BASE_URL=http://127.0.0.1:8600 >>/root/payrelay/deploy/systemd/payrelay.env
END

say "docs/production/deploy.md, systemd"
{
    cat "$folder/settings" "$folder/before"
    # Set above; and installed already.
    chapter docs/production/deploy.md systemd '^(SITE=|APP_ID=|read |deploy/image/install)'
} >"$root/root/deploy.sh"
inside bash /root/deploy.sh || fail "the page of the deployment"

say "docs/production/watch.md, on one machine"
{ cat "$folder/settings"; chapter docs/production/watch.md "On one machine"; } >"$root/root/watch.sh"
inside bash /root/watch.sh || fail "the page of watching"

say "what came of it"
inside systemctl --failed --no-legend | grep . && fail "a unit failed"
key=$(inside payrelay-admin keys create --name trial)
inside curl --silent --fail -H "Authorization: Bearer $key" https://pay.example.com/gateway/api/subscriptions >/dev/null ||
    fail "no answer of the gateway through the proxy"
inside payrelay-admin keys revoke "$(cut -d_ -f3 <<<"$key")"
inside bash -c 'ls /var/lib/payrelay/marks/* >/dev/null && ls /var/lib/payrelay-backups/*/manifest.json' || fail "no marks, or no backup"
asked() { inside curl --silent "http://127.0.0.1:9090/api/v1/query" --data-urlencode "query=$1"; }
wanted() {
    for _ in $(seq "$3"); do
        asked "$1" | grep -q "$2" && return 0
        sleep 1
    done
    fail "Prometheus does not show $1: $(asked "$1")"
}
wanted 'sum(up{job="payrelay"})' '"3"' 60
wanted 'payrelay_backup_failed + payrelay_audit_failed' '"0"' 60
inside systemctl stop payrelay@3
wanted 'ALERTS{alertname="PayrelayDown",alertstate="firing"}' '127.0.0.1:9463' 240
inside amtool --alertmanager.url=http://127.0.0.1:9093 alert query alertname=PayrelayDown | grep -q PayrelayDown ||
    fail "Alertmanager was not told"
inside systemctl start payrelay@3

say "docs/production/upgrade.md, onto the same version"
inside cp -a /opt/payrelay-0.1.0 /opt/payrelay-0.2.0
{
    cat "$folder/settings"
    sed -n '/^```sh$/,/^```$/p' docs/production/upgrade.md | grep -v -e '^```' -e '^deploy/image/install'
} >"$root/root/upgrade.sh"
inside bash /root/upgrade.sh || fail "the page of the upgrade"
inside systemctl is-active --quiet payrelay@1 payrelay@2 payrelay@3 || fail "a process does not run after the upgrade"
say "done"
