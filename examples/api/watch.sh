#!/bin/sh
# Prints what happens to an Application until it is gone, or the stream ends: the kind of each event, and its phase of health.
# ./watch.sh APPLICATION
set -eu
. "$(dirname "$0")/common.sh"

app=${1:?which Application}
fields=result.type,result.application.metadata.name,result.application.status.health
{
  curl --silent --no-buffer "$ARGOCD_SERVER/api/v1/stream/applications?name=$app&fields=$fields" \
    --header 'Accept: text/event-stream' --header "Authorization: Bearer $ARGOCD_AUTH_TOKEN" &
  echo "curl: $!"
  wait
} | while read -r line; do
  case "$line" in
    curl:*) curl=${line#curl: } && continue ;;
    data:*) ;;
    *) continue ;;
  esac
  kind=$(printf '%s' "$line" | field type)
  echo "$app $kind $(printf '%s' "$line" | field status)"
  if [ "$kind" = DELETED ]; then
    kill "$curl"
    exit 0
  fi
done
