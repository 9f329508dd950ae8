#!/bin/sh
# A cluster is told by its address; without one there is nothing to test.
case "$TARGET_URL" in
https://?*.example.com) ;;
*) echo "not an address of a cluster: $TARGET_URL" && exit 1 ;;
esac
