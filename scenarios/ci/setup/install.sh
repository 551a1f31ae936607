#!/bin/sh
# Unpacks a release into a folder, unless it is there already: install.sh RELEASE SHA256 FOLDER
# RELEASE is the path or the URL of foretrace-VERSION-linux-MACHINE.tar.gz; SHA256 is its line in SHA256SUMS, or empty for a file.
set -eu
release=$1 sha256=$2 folder=$3
if [ -x "$folder/bin/foretrace" ]; then exit 0; fi
file=$release
case $release in
  *://*)
    [ -n "$sha256" ] || { echo "foretrace: a release that is downloaded needs its sha256, from SHA256SUMS" >&2; exit 2; }
    file=$(mktemp)
    curl --fail --silent --show-error --location --output "$file" -- "$release"
    ;;
esac
[ -f "$file" ] || { echo "foretrace: there is no release file '$release'" >&2; exit 2; }
if [ -n "$sha256" ]; then
  echo "$sha256  $file" | sha256sum --check --quiet - || { echo "foretrace: $release has another sha256" >&2; exit 2; }
fi
mkdir -p "$folder"
tar -xzf "$file" -C "$folder" --strip-components=1
