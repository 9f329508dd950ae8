#!/bin/sh
# Waits until an Application is synced, healthy and idle; fails if its operation failed. ./poll.sh APPLICATION
set -eu
. "$(dirname "$0")/common.sh"

app=${1:?which Application}
fields=items.operation.sync,items.status.operationState.phase,items.status.sync.status,items.status.health
while :; do
  answer=$(api GET "/api/v1/applications?name=$app&fields=$fields")
  phase=$(printf '%s' "$answer" | field phase)
  health=$(printf '%s' "$answer" | grep -o '"health": *{[^}]*}' | field status) || health=
  sync=$(printf '%s' "$answer" | grep -o '"sync": *{[^{}]*"status"[^}]*}' | field status) || sync=
  case "$answer" in *'"operation":{'*) phase=Requested ;; esac
  case "$phase $sync $health" in
    "Succeeded Synced Healthy") echo "$app: $phase, $sync, $health" && exit 0 ;;
    Failed* | Error*) echo "$app: $phase" >&2 && exit 1 ;;
  esac
  sleep 1
done
