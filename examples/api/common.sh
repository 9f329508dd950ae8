# What the scripts beside this one share. They need curl and nothing else, and run unchanged against Argo CD's own server.
#
#   ARGOCD_SERVER      where the API is, as http://127.0.0.1:8080
#   ARGOCD_AUTH_TOKEN  who asks: what session.sh prints, or a token of an account or project
# shellcheck shell=sh

: "${ARGOCD_SERVER:?where the API is, as http://127.0.0.1:8080}"

# api METHOD PATH [BODY]: asks, prints the answer, and fails with it where the server refuses.
api() {
  body=$(
    curl --silent --show-error --request "$1" "$ARGOCD_SERVER$2" --write-out '\n%{http_code}' \
      --header 'Content-Type: application/json' \
      ${ARGOCD_AUTH_TOKEN:+--header "Authorization: Bearer $ARGOCD_AUTH_TOKEN"} \
      ${3:+--data "$3"}
  )
  code=${body##*
}
  body=${body%
*}
  if [ "$code" -ge 400 ]; then
    echo "$1 $2: $code $(printf '%s' "$body" | field message)" >&2
    return 1
  fi
  printf '%s\n' "$body"
}

# field NAME: the first text of that name in the JSON that is read.
field() {
  grep -o "\"$1\": *\"[^\"]*\"" | sed -n '1s/^[^:]*: *"\(.*\)"$/\1/p'
}
