#!/bin/sh
# Deletes an Application with what it deployed, and waits until it is gone. ./delete.sh APPLICATION
set -eu
. "$(dirname "$0")/common.sh"

app=${1:?which Application}
api DELETE "/api/v1/applications/$app?cascade=true" >/dev/null
while api GET "/api/v1/applications?name=$app&fields=items.metadata.name" | grep -q "\"name\": *\"$app\""; do
  sleep 1
done
echo "$app: gone"
