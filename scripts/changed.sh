#!/bin/sh
# Lists the C++ files of include/ and src/ that differ from where this branch left the main one, those with the most changed lines
# first; on the main branch itself, those that differ from the commit before. What only the page for browsers has is left out. Fails
# where no main branch is known.
set -eu
cd "$(dirname "$0")/.."
for main in origin/main origin/master main master ''; do
  base=$(git merge-base HEAD "${main:-none}" 2>/dev/null) && break
done
[ -n "$main" ] || exit 1
[ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse --verify --quiet 'HEAD^') || exit 1
{
  git diff --numstat --no-renames --diff-filter=d "$base" -- include src
  git ls-files --others --exclude-standard -- include src | sed 's/^/999999\t0\t/'
} | sort -k1,1nr -k3 | cut -f 3 | grep -E '\.(cc|h)$' | grep -vE '/wasm/|/readers_left_out\.cc$' || true
