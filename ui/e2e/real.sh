#!/usr/bin/env bash
# The pages of a real `baton up`: a fleet that is held and let go by the tests. BATON names the binary (default:
# target/release/baton). Needs git, kubectl and Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
exec node e2e/real/run.mjs "$@"
