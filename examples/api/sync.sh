#!/bin/sh
# Starts a sync and prints its revision, if one was asked for. ./sync.sh APPLICATION [REVISION]
set -eu
. "$(dirname "$0")/common.sh"

app=${1:?which Application}
api POST "/api/v1/applications/$app/sync" "{\"revision\": \"${2:-}\", \"prune\": false}" >/dev/null
echo "$app: a sync was asked for"
