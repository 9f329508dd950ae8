#!/bin/sh
# Prints what can be done to a resource, or does it. ./actions.sh APPLICATION NAMESPACE GROUP KIND NAME [ACTION]
set -eu
. "$(dirname "$0")/common.sh"

app=${1:?which Application} namespace=$2 group=$3 kind=$4 name=$5 action=${6:-}
if [ -z "$action" ]; then
  api GET "/api/v1/applications/$app/resource/actions?namespace=$namespace&group=$group&version=v1&kind=$kind&resourceName=$name" |
    sed 's/"params": *\[[^]]*\]//g' | grep -o '"name": *"[^"]*"' | sed 's/.*"\([^"]*\)"$/\1/'
else
  api POST "/api/v1/applications/$app/resource/actions/v2" \
    "{\"namespace\": \"$namespace\", \"group\": \"$group\", \"version\": \"v1\", \"kind\": \"$kind\", \"resourceName\": \"$name\", \"action\": \"$action\"}" >/dev/null
  echo "$app: $action of $kind $name was done"
fi
