#!/bin/sh
# Posts a file as the comment of a pull request, or replaces the one of an earlier run: comment.sh FILE REPOSITORY NUMBER
# Needs gh and a token in GH_TOKEN that may write to pull requests.
set -eu
mark="<!-- foretrace -->"
comments=repos/$2/issues/$3/comments
body=$(mktemp)
{ echo "$mark"; cat -- "$1"; } > "$body"
id=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1)
if [ -n "$id" ]; then
  gh api --method PATCH "repos/$2/issues/comments/$id" -F "body=@$body" --silent
else
  gh api "$comments" -F "body=@$body" --silent
fi
