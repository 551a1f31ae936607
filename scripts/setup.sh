#!/bin/sh
# Installs the packages that Foretrace is built from, on Debian 12 or Ubuntu 22.04 and later. Returns at once if all are installed.
# With dnf, pacman or brew it names the missing ones, and fails until they are installed.
#     scripts/setup.sh            to build the product
#     scripts/setup.sh tests      to build and run the tests as well, the Python module among them
#     scripts/setup.sh all        also for tests that are skipped otherwise (see tests/README.md), and for cpack
#     scripts/setup.sh release    for scripts/release.py, which links the program statically
#     scripts/setup.sh arm64      for scripts/release.py --arch arm64, on Debian for x86-64
#     scripts/setup.sh explorer   for scripts/explorer.py, which builds the page
#     scripts/setup.sh develop    for all presets: sanitizers, fuzzing, clang-tidy, clang-format
set -eu

packages="g++ cmake ninja-build make nlohmann-json3-dev libcli11-dev libboost-dev zlib1g-dev libzstd-dev libisal-dev libsqlite3-dev libarchive-dev libre2-dev libssl-dev libxxhash-dev libexpat1-dev libyaml-dev libfmt-dev libtomlplusplus-dev libglpk-dev libmuparser-dev"
tests="python3 python3-dev pybind11-dev libgtest-dev"
optional="python3-pandas python3-matplotlib python3-torch python3-setuptools python3-wheel python3-pip python3-venv python3-yaml protobuf-compiler chromium chromium-driver slurm-wlm munge openmpi-bin libns3-dev python3-sphinx python3-myst-parser furo man-db file dpkg-dev"
static="libacl1-dev libattr1-dev liblz4-dev liblzma-dev libbz2-dev libxml2-dev libicu-dev nettle-dev libgmp-dev libltdl-dev libsuitesparse-dev"
page="emscripten clang-16 lld-16 llvm-16 libc++-16-dev-wasm32 nodejs"
command -v npm >/dev/null || page="$page npm"
case "${1:-product}" in
  product) ;;
  tests) packages="$packages $tests" ;;
  all) packages="$packages $tests $optional $page" ;;
  explorer) packages="$packages $page" ;;
  release) packages="$packages $static" ;;
  arm64)
    # Debian's libisal-dev and libmuparser-dev for arm64 cannot be installed beside the others.
    foreign="zlib1g-dev libzstd-dev libsqlite3-dev libarchive-dev libre2-dev libssl-dev libxxhash-dev libexpat1-dev libyaml-dev libglpk-dev"
    packages="$packages $static g++-aarch64-linux-gnu qemu-user-static$(printf ' %s:arm64' $foreign $static)"
    ;;
  develop) packages="$packages $tests $optional $page clang libclang-rt-16-dev clang-tidy clang-format ccache git" ;;
  *)
    echo "usage: scripts/setup.sh [product|tests|all|release|arm64|explorer|develop]" >&2
    exit 2
    ;;
esac

# What the packages of the product and of the tests are called elsewhere; "-" comes with the system or with another package.
names="
debian              dnf              pacman         brew
g++                 gcc-c++          gcc            -
cmake               cmake            cmake          cmake
ninja-build         ninja-build      ninja          ninja
make                make             make           -
nlohmann-json3-dev  json-devel       nlohmann-json  nlohmann-json
libcli11-dev        cli11-devel      cli11          cli11
libboost-dev        boost-devel      boost          boost
zlib1g-dev          zlib-devel       zlib           zlib
libzstd-dev         libzstd-devel    zstd           zstd
libisal-dev         isa-l-devel      isa-l          isa-l
libsqlite3-dev      sqlite-devel     sqlite         sqlite
libarchive-dev      libarchive-devel libarchive     libarchive
libre2-dev          re2-devel        re2            re2
libssl-dev          openssl-devel    openssl        openssl
libxxhash-dev       xxhash-devel     xxhash         xxhash
libexpat1-dev       expat-devel      expat          expat
libyaml-dev         libyaml-devel    libyaml        libyaml
libfmt-dev          fmt-devel        fmt            fmt
libtomlplusplus-dev tomlplusplus-devel tomlplusplus  tomlplusplus
libglpk-dev         glpk-devel       glpk           glpk
libmuparser-dev     muParser-devel   muparser       muparser
python3             python3          python         python
python3-dev         python3-devel    -              -
pybind11-dev        pybind11-devel   pybind11       pybind11
libgtest-dev        gtest-devel      gtest          googletest
"
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  if command -v dnf >/dev/null; then column=2 query="rpm -q --whatprovides" install="sudo dnf install"
  elif command -v pacman >/dev/null; then column=3 query="pacman -Q" install="sudo pacman -S"
  elif command -v brew >/dev/null; then column=4 query="brew list --versions" install="brew install"
  else column=1 query=false install="in another way, the contents of Debian's packages"
  fi
  missing="" unknown=""
  for package in $packages; do
    name=$(echo "$names" | awk -v package="$package" -v column="$column" '$1 == package { print $column }')
    [ -n "$name" ] || unknown="$unknown $package"
    [ -z "$name" ] || [ "$name" = - ] || $query "$name" >/dev/null 2>&1 || missing="$missing $name"
  done
  [ -n "$missing$unknown" ] || exit 0
  [ -z "$missing" ] || echo "setup.sh: there is no apt-get; install, and run this again: $install$missing" >&2
  [ -z "$unknown" ] || echo "setup.sh: names are only known on Debian for:$unknown" >&2
  exit 1
fi

missing=""
for package in $packages; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "${state#installed}" != "$state" ] || missing="$missing $package"  # "installedinstalled" if arm64 has it, too.
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: must be root, or have sudo, to install:$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi
echo "setup.sh: installing$missing" >&2
[ "${1:-}" != arm64 ] || $as_root dpkg --add-architecture arm64
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
