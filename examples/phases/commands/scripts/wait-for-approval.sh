#!/bin/sh
# Passes when somebody has approved this very rollout: with a file of its key. Asked again as often as `retry` says.
[ -e "approvals/$IDEMPOTENCY_KEY" ] || { echo "approvals/$IDEMPOTENCY_KEY is not there"; exit 1; }
