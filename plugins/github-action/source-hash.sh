#!/usr/bin/env bash
# Prints a hash of the sources of forewarn, which come with this action: the key of the cached program.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The library of stories is built into the program.
find Cargo.toml Cargo.lock rust-toolchain.toml crates stories/library -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16
