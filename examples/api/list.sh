#!/bin/sh
# Prints a line for each Application: its name, whether it is synced, how it fares. ./list.sh [SELECTOR]
set -eu
. "$(dirname "$0")/common.sh"

fields=items.metadata.name,items.status.sync.status,items.status.health
names=$(
  api GET "/api/v1/applications?selector=${1:-}&fields=items.metadata.name" |
    grep -o '"name": *"[^"]*"' | sed 's/.*"\([^"]*\)"$/\1/'
) || exit 0 # grep finds nothing where there are none
for name in $names; do
  answer=$(api GET "/api/v1/applications?name=$name&fields=$fields")
  health=$(printf '%s' "$answer" | grep -o '"health": *{[^}]*}' | field status)
  sync=$(printf '%s' "$answer" | grep -o '"sync": *{[^}]*}' | field status)
  echo "$name ${sync:-Unknown} ${health:-Unknown}"
done
