#!/bin/sh
# Passes while no more than ten in a thousand requests fail, as metrics/errors-per-thousand tells.
set -eu
errors=$(cat metrics/errors-per-thousand)
[ "$errors" -le 10 ] || { echo "$errors of 1000 requests fail"; exit 1; }
