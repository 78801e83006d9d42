#!/usr/bin/env bash
# What `make test-image` does: build the image, run it with a root that cannot be written, no network and a volume;
# remember, kill it, search, from this host and from inside. BUILD_ARGS and RUN_ARGS go to podman, as this host needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
read -ra podman <<< "${PODMAN:-podman}"
read -ra build_args <<< "${BUILD_ARGS:-}"
read -ra run_args <<< "${RUN_ARGS:-}"
command -v "${podman[0]}" >/dev/null || { echo "make test-image takes podman"; exit 2; }
[ "$(id -u)" = 0 ] || { echo "make test-image gives a folder to the user 970 of the image: run it as root"; exit 2; }
run=$(mktemp -d); install -d -o 970 -g 970 -m 0700 "$run/sockets"
name=memoryd-test-$$
finish() {
  code=$?
  [ "$code" = 0 ] || "${podman[@]}" logs "$name" || true
  "${podman[@]}" rm -f "$name" >/dev/null 2>&1 || true
  "${podman[@]}" volume rm "$name" >/dev/null 2>&1 || true
  "${podman[@]}" rmi "$name" >/dev/null 2>&1 || true
  rm -rf "$run"
}
trap finish EXIT
"${podman[@]}" build --format docker "${build_args[@]}" -t "$name" -f deploy/Containerfile .
start() {
  "${podman[@]}" run -d --name "$name" --network none --read-only --tmpfs /tmp "${run_args[@]}" \
    -v "$name:/var/lib/memoryd" -v "$run/sockets:/run/memoryd" "$name"
  for _ in $(seq 300); do inside memoryd status >/dev/null 2>&1 && return; sleep 0.1; done
  echo "it did not start"; exit 1
}
inside() { "${podman[@]}" exec "$name" "$@"; }
start
admin=$(echo "$run"/sockets/*.sock)
inside env MEMORY_ENDPOINT=unix:///run/memoryd/"$(basename "$admin")" MEMORY_USER_ID=alice memory add "Anna lives in Lisbon"
if inside touch /opt/memoryd/x 2>/dev/null; then echo "the root can be written"; exit 1; fi
[ "$(inside id -u)" = 970 ]
"${podman[@]}" kill "$name" >/dev/null
"${podman[@]}" rm -f "$name" >/dev/null
start
if [ -x .venv/bin/memory ]; then  # from the host, over the directory that both have
  env MEMORY_ENDPOINT="unix://$admin" MEMORY_USER_ID=alice .venv/bin/memory search "where does Anna live?" | grep -q Lisbon
else
  echo "left out: the search from this host, which takes .venv (make setup)"
fi
inside env MEMORY_ENDPOINT=unix:///run/memoryd/"$(basename "$admin")" MEMORY_USER_ID=alice memory search "Anna" | grep -q Lisbon
inside memoryd status
"${podman[@]}" healthcheck run "$name"
"${podman[@]}" stop "$name" >/dev/null
[ "$("${podman[@]}" inspect --format '{{.State.ExitCode}}' "$name")" = 0 ]
echo "built, served, killed, found, stopped"
