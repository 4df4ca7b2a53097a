#!/usr/bin/env bash
# Builds forewarn from the sources that come with this action, unless the cache has it, and puts it on the path.
set -euo pipefail
place="$RUNNER_TEMP/forewarn"
if [ ! -x "$place/forewarn" ]; then
    cd "$(dirname "$0")/../.."
    cargo build --release --locked --package forewarn --bin forewarn
    mkdir -p "$place"
    cp target/release/forewarn "$place/forewarn"
fi
"$place/forewarn" --version
echo "$place" >> "$GITHUB_PATH"
echo "FOREWARN_BIN=$place/forewarn" >> "$GITHUB_ENV"
