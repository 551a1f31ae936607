#!/usr/bin/env python3
"""Makes the files of a release: one program for any Linux, its checksums, and the list of its parts.

    scripts/release.py [--build FOLDER] [--out FOLDER]

foretrace-VERSION-linux-MACHINE.tar.gz    bin/foretrace, linked statically, with the libraries that `collect` puts into a program
foretrace-VERSION-linux-MACHINE.spdx.json the libraries inside, with their versions (SPDX 2.3)
SHA256SUMS

Without --build the program is built in build-static (cmake -DFORETRACE_STATIC=ON); a given build folder is used as it is. Before
anything is written, the program must answer a question in an empty folder, as root with nothing else in its file system.
"""

import argparse
import gzip
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"
# Header-only libraries are not part of the link line.
HEADERS = ("nlohmann-json3-dev", "libcli11-dev", "libboost-dev")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def built():
    folder = ROOT / "build-static"
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFORETRACE_STATIC=ON", "-DFORETRACE_TESTS=OFF",
        "-DFORETRACE_UNITY=ON")
    run("cmake", "--build", folder)
    return folder


def installed(build, folder):
    """The program and the libraries that it loads into others, stripped, without traces of the build machine."""
    run("cmake", "--install", build, "--prefix", folder, "--component", "program", "--strip", stdout=subprocess.DEVNULL)
    return folder


def check(program, is_static):
    """Checks that the program answers, alone in its file system if this process may change the root."""
    with tempfile.TemporaryDirectory() as empty:
        shutil.copy(program, empty)
        shutil.copy(SAMPLE, empty)
        alone = is_static and os.geteuid() == 0
        command = ["./foretrace", "predict", SAMPLE.name, "--with", "loader:workers=4", "--no-cache", "--quiet", "--brief"]
        done = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False,
                              preexec_fn=(lambda: os.chroot(empty)) if alone else None)
        if done.returncode != 0 or "48.91 ms" not in done.stdout:
            sys.exit(f"release: the program does not answer: {done.stdout}{done.stderr}")


def packages(build):
    """{name: version} of Debian's packages in the program."""
    links = subprocess.run(["ninja", "-C", build, "-t", "commands", "foretrace"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    files = sorted(set(re.findall(r"(/usr/lib/\S+\.(?:a|so))", links)))
    owners = subprocess.run(["dpkg-query", "-S", *files], capture_output=True, text=True, check=False).stdout.splitlines()
    names = {owner.split(":")[0] for owner in owners} | set(HEADERS) | {"libc6-dev", "libstdc++-12-dev"}
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", *sorted(names)], capture_output=True, text=True,
                            check=False).stdout.splitlines()
    return {name: version for name, version, state in map(str.split, listed) if state == "installed"}


def described(version, parts):
    def package(name, part_version, supplier):
        return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": part_version, "supplier": supplier,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False}

    whole = package("foretrace", version, "NOASSERTION")
    inner = [package(name, part_version, "Organization: Debian") for name, part_version in sorted(parts.items())]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"foretrace-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/foretrace-{version}", "packages": [whole, *inner],
            "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": ["Tool: scripts/release.py"]},
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": whole["SPDXID"]}] +
                             [{"spdxElementId": whole["SPDXID"], "relationshipType": "STATIC_LINK", "relatedSpdxElement": one["SPDXID"]} for one in inner]}


def packed(folder, path):
    """Packs files reproducibly: the same files give the same bytes."""
    def plain(member):
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    with gzip.GzipFile(path, "wb", mtime=0) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for one in sorted(folder.rglob("*")):
            if one.is_file():
                archive.add(one, pathlib.Path(path.name.removesuffix(".tar.gz")) / one.relative_to(folder), filter=plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-release")
    asked = parser.parse_args()
    build = asked.build or built()
    is_static = "FORETRACE_STATIC:BOOL=ON" in (build / "CMakeCache.txt").read_text()
    version = re.search(r"project\(foretrace VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = installed(build, pathlib.Path(temporary))
        check(folder / "bin" / "foretrace", is_static)
        asked.out.mkdir(parents=True, exist_ok=True)
        archive = asked.out / f"foretrace-{version}-linux-{platform.machine()}.tar.gz"
        packed(folder, archive)
    bill = asked.out / f"foretrace-{version}-linux-{platform.machine()}.spdx.json"
    bill.write_text(json.dumps(described(version, packages(build)), indent=1) + "\n")
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in (archive, bill))
    (asked.out / "SHA256SUMS").write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    main()
