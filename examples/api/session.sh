#!/bin/sh
# Signs in and prints a token: ARGOCD_AUTH_TOKEN=$(USERNAME=admin PASSWORD=… ./session.sh)
set -eu
. "$(dirname "$0")/common.sh"
unset ARGOCD_AUTH_TOKEN

: "${USERNAME:?who signs in}" "${PASSWORD:?with which password}"
quoted=$(printf '%s' "$PASSWORD" | sed 's/[\\"]/\\&/g')
answer=$(api POST /api/v1/session "{\"username\": \"$USERNAME\", \"password\": \"$quoted\"}")
printf '%s' "$answer" | field token
