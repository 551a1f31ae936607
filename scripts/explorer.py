#!/usr/bin/env python3
"""Builds the explorer: Foretrace as a page, in one folder that any web server can hold.

    scripts/explorer.py [--build FOLDER] [--out FOLDER] [--serve] [--quick] [--node]

The page is in FOLDER/explorer of the build folder (build-explorer), and copied to --out. Needs the packages of `scripts/setup.sh
explorer`. The source of zlib, zstd, SQLite and RE2 comes from packages of npm, each checked against the checksum here.
--serve shows the page on this machine. --quick builds it in half the time, less optimized, for tests.
--node builds the command line for Node instead, in FOLDER/node, which scripts/release.py packs. Exit status 77: tools or packages are not available.
"""

import argparse
import base64
import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Packages that contain the source of a library, with the version and the SHA-512 of the package as npm states it.
SOURCES = {
    "muhammara": ("6.0.6", "wqN47a1v2tsiOKnqi5Wj2iWb9uCAGJS4SfpPekxumEBmc3F+2eznWgzt8E1Sru3M2tflX4V3F5TqDsiyg/WtRw=="),  # zlib 1.2.13
    "zstd-napi": ("0.0.13", "ErGF+Ko1PsbooU6oC/sc/diiWKwVa0kd/5AkFSs7kg5kwcEuOtSzOy3xUOadXQlAVNab9TxsxaUk3hOq3cj/lA=="),  # zstd 1.5.7
    "better-sqlite3": ("12.11.1", "dq9AtApgg5PGFtBzPFSBl3HZQjHok5gaQCM6zh2Yk0aSmDCs1CbnVI8/HgASQkNKsWFpseIO9beg5xxpYhbIfA=="),
    "re2": ("1.18.2", "9r1/ZWC46rmTf+q/qNRa6mVbWaX0PnWclBDwozaa7UfvS8hny6ENejEtwNUwmNRDGFpOISERPQeZ6EE+6djHyA=="),
}
# The tool with which the tests check accessibility.
SOURCES["axe-core"] = ("4.14.1", "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==")
TOOLS = ("cmake", "ninja", "npm", "em++", "/usr/lib/llvm-16/bin/clang++")


def stop(reason):
    print(f"explorer.py: {reason}", file=sys.stderr)
    sys.exit(77)


def fetch(name, version, checksum, folder):
    """Unpacks a package into folder/name, unless the folder exists."""
    if (folder / name / version).is_file():
        return
    with tempfile.TemporaryDirectory() as download:
        if subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=download, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            stop(f"npm cannot fetch {name}@{version}")
        (package,) = pathlib.Path(download).iterdir()
        found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        if found != checksum:
            sys.exit(f"explorer.py: {name}@{version}: must have the checksum sha512-{checksum}, got sha512-{found}")
        shutil.rmtree(folder / name, ignore_errors=True)
        with tarfile.open(package) as archive:
            for member in archive:
                path = pathlib.PurePosixPath(member.name)
                if not member.isfile() or ".." in path.parts or path.is_absolute():
                    continue
                target = folder.joinpath(name, *path.parts[1:])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())
    (folder / name / version).touch()


def build(folder, is_quick, is_for_node):
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        stop(f"needs {', '.join(missing)}: scripts/setup.sh explorer")
    sources = folder / "sources"
    for name, (version, checksum) in SOURCES.items():
        fetch(name, version, checksum, sources)
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/scripts/wasm.cmake",
                 f"-DFORETRACE_SOURCES={sources}", "-DFORETRACE_UNITY=ON", "-DCMAKE_BUILD_TYPE=" + ("Quick" if is_quick else "Release"),
                 "-DCMAKE_C_FLAGS_QUICK=-O1", "-DCMAKE_CXX_FLAGS_QUICK=-O1"]
    if shutil.which("ccache"):
        configure += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", "foretrace_node" if is_for_node else "explorer"], check=True)
    return folder / ("node" if is_for_node else "explorer")


def serve(folder):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build-explorer")
    options.add_argument("--out", type=pathlib.Path)
    options.add_argument("--serve", action="store_true")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--node", action="store_true")
    asked = options.parse_args()
    folder = build(asked.build.resolve(), asked.quick, asked.node)
    if asked.out:
        shutil.copytree(folder, asked.out, dirs_exist_ok=True)
        folder = asked.out
    size = sum(os.path.getsize(path) for path in folder.iterdir())
    print(f"{folder}: {size / 1e6:.1f} MB")
    if asked.serve:
        serve(folder)


if __name__ == "__main__":
    main()
