#!/usr/bin/env bash
# The tests of this folder against a real `baton up`: a fleet, a repository, an account that may only look, a set that moves, prunes that wait.
# BATON names the binary (default: target/release/baton). Needs git, kubectl, curl and Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

baton=$(realpath "${BATON:-../target/release/baton}")
home=$(mktemp -d)
fleet=$home/fleet
repository=https://git.example.com/fleet/config.git
export HOME=$home KUBECONFIG=$fleet/kubeconfig
up=
finish() {
  [ -z "$up" ] || { kill "$up" && wait "$up" || true; }
  rm -rf "$home"
}
trap finish EXIT

commit() { git -C "$home/config" add -A && git -C "$home/config" -c user.name=e2e -c user.email=e2e@example.com commit -qm "$1"; }
config_map() { printf 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations: {%s}\ndata: {colour: blue}\n' "$1" "${2-}"; }

git init -qb main "$home/config"
mkdir -p "$home/config/web"
cat >"$home/config/web/deployment.yaml" <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example.com/web:1.0'}]}
YAML
for app in a b c d; do
  mkdir -p "$home/config/$app"
  config_map "$app-stays" >"$home/config/$app/stays.yaml"
  config_map "$app-goes" 'argocd.argoproj.io/sync-options: Prune=confirm' >"$home/config/$app/goes.yaml"
  config_map "$app-goes-too" 'argocd.argoproj.io/sync-options: Prune=confirm' >"$home/config/$app/too.yaml"
done
commit "Version 1.0"

"$baton" up --ephemeral --no-demo --data-dir "$fleet" --listen 127.0.0.1:0 --api-listen 127.0.0.1:0 --ready-delay 2s --repo "$repository=$home/config" >"$home/log" 2>&1 &
up=$!
until url=$(grep -om1 'http://[0-9.:]*' "$home/log"); do
  kill -0 "$up" || { cat "$home/log"; exit 1; }
  sleep 0.2
done
password=$(cat "$fleet/admin-password")

kubectl apply -f - <<YAML
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd}, data: {accounts.viewer: login}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-rbac-cm, namespace: argocd}, data: {policy.csv: 'g, viewer, role:readonly'}}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  goTemplate: true
  generators: [{clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}}}}]
  strategy:
    type: RollingSync
    rollingSync:
      steps:
        - matchExpressions: [{key: env, operator: In, values: [dev]}]
        - matchExpressions: [{key: env, operator: In, values: [staging]}]
        - matchExpressions: [{key: env, operator: In, values: [prod]}]
  template:
    metadata: {name: 'web-{{.name}}', labels: {env: '{{.metadata.labels.env}}'}}
    spec:
      project: default
      source: {repoURL: $repository, targetRevision: main, path: web}
      destination: {name: '{{.name}}', namespace: web}
      syncPolicy: {syncOptions: [CreateNamespace=true]}
YAML
for app in a b c d; do
  "$baton" app create "$app" --repo "$repository" --path "$app" --dest-name dev --dest-namespace web --sync-option CreateNamespace=true
  "$baton" app sync "$app" --timeout 120s >"$home/sync" 2>&1 || { cat "$home/sync"; exit 1; }
done
until [ "$(kubectl get applications -n argocd -l env -o jsonpath='{.items[*].status.health.status}')" = "Healthy Healthy Healthy" ]; do sleep 1; done

viewer="a word for who may only look"
token=$(printf '{"username": "admin", "password": "%s"}' "$password" | curl -fsS "$url/api/v1/session" -H 'Content-Type: application/json' -d @- | sed 's/.*"token":"\([^"]*\)".*/\1/')
printf '{"name": "viewer", "currentPassword": "%s", "newPassword": "%s"}' "$password" "$viewer" |
  curl -fsS -X PUT "$url/api/v1/account/password" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d @- >/dev/null

# What the tests have happen. Each is run by `sh`, in the middle of a test.
cat >"$home/begin" <<SH
set -e
sed -i 's/web:1.0/web:2.0/' "$home/config/web/deployment.yaml"
git -C "$home/config" -c user.name=e2e -c user.email=e2e@example.com commit -qam 'Version 2.0'
kubectl annotate applicationsets,applications -n argocd --all argocd.argoproj.io/refresh=normal --overwrite >/dev/null
kubectl annotate applicationsets web -n argocd argocd.argoproj.io/application-set-refresh=true --overwrite >/dev/null
SH
cat >"$home/need" <<SH
set -e
git -C "$home/config" rm -q '*/goes.yaml' '*/too.yaml'
git -C "$home/config" -c user.name=e2e -c user.email=e2e@example.com commit -qm 'Less'
for app in a b c d; do
  "$baton" app sync \$app --prune --timeout 10s >/dev/null 2>&1 || [ \$? = 2 ]
done
SH
cat >"$home/gone" <<SH
for _ in \$(seq 100); do
  kubectl --kubeconfig "$fleet/clusters/dev.kubeconfig" get configmap a-goes -n web >/dev/null 2>&1 || exit 0
  sleep 0.2
done
exit 1
SH
export BATON_E2E_URL=$url BATON_E2E_USER=admin BATON_E2E_PASSWORD=$password BATON_E2E_VIEWER=viewer BATON_E2E_VIEWER_PASSWORD=$viewer
export BATON_E2E_ROLLOUT=argocd/web BATON_E2E_BEGIN="sh $home/begin" BATON_E2E_NEED_APPROVAL="sh $home/need" BATON_E2E_GONE="sh $home/gone"
npm run e2e
