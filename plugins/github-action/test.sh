#!/usr/bin/env bash
# Runs forewarn test with the inputs of the action, in the directory of the workflow.
set -euo pipefail
words=()
if [ -n "${INPUT_STORY:-}" ]; then
    words+=(--story "$INPUT_STORY")
else
    for event in $INPUT_EVENTS; do
        words+=(--event "$event")
    done
fi
if [ -n "${INPUT_FLEET:-}" ]; then
    words+=(--fleet "$INPUT_FLEET")
fi
if [ -n "${INPUT_REPORT:-}" ]; then
    words+=(--report "$INPUT_REPORT")
fi
# Options have no spaces of their own.
# shellcheck disable=SC2206
words+=(${INPUT_OPTIONS:-})
exec "${FOREWARN_BIN:-forewarn}" test "${words[@]}" -- bash -c "$INPUT_COMMAND"
