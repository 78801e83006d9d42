#!/usr/bin/env bash
# What `make test-deb` does, as root: install dist/*.deb, run a daemon as its user, remember, search, remove it again.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "make test-deb installs a package: run it as root, in a container"; exit 2; }
if dpkg -s memoryd >/dev/null 2>&1 || [ -e /var/lib/memoryd ] || [ -e /opt/memoryd ]; then
  echo "memoryd is installed here already, or its data is there; nothing was done"; exit 2
fi
dpkg -i dist/memoryd_*.deb
user=(setpriv --reuid memoryd --regid memoryd --clear-groups env -i PATH=/usr/bin:/bin HOME=/var/lib/memoryd)
as_user() { "${user[@]}" "$@"; }
run=$(mktemp -d); chown memoryd "$run"; chmod 0700 "$run"
"${user[@]}" memoryd serve --data-dir /var/lib/memoryd --config /etc/memoryd/memoryd.toml --socket "$run/admin.sock" 2>"$run/log" &
daemon=$!
finish() {
  code=$?
  [ "$code" = 0 ] || cat "$run/log"
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
  dpkg -P memoryd >/dev/null
  rm -rf /var/lib/memoryd "$run"
}
trap finish EXIT
for _ in $(seq 300); do [ -S "$run/admin.sock" ] && break; sleep 0.1; done
memory() { as_user env MEMORY_ENDPOINT="unix://$run/admin.sock" MEMORY_USER_ID=alice memory "$@"; }
for _ in $(seq 100); do memory list >/dev/null 2>&1 && break; sleep 0.1; done
memory add "Anna lives in Lisbon"
memory search "where does Anna live?" | grep -q Lisbon
as_user memoryd status --socket "$run/admin.sock"
[ "$(stat -c %U:%a /var/lib/memoryd)" = memoryd:700 ]
[ "$(stat -c %G:%a /etc/memoryd/memoryd.toml)" = memoryd:640 ]
echo "installed, served, found; now it is removed again"
