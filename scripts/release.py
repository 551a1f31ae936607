#!/usr/bin/env python3
"""Makes the files of a release, which need no compiler where they are used.

    scripts/release.py [--arch arm64 | --build FOLDER] [--node FOLDER] [--packages FOLDER] [--out FOLDER]

foretrace-VERSION-linux-MACHINE.tar.gz    bin/foretrace, linked statically, with the libraries that `collect` puts into a program
foretrace-VERSION-linux-MACHINE.spdx.json the libraries inside, with their versions (SPDX 2.3)
foretrace-VERSION-py3-none-....whl        the same program with the Python module, which runs it: any Python from 3.9, no compiled module
foretrace-VERSION.tgz                     the program as WebAssembly, for npx
*.deb                                     Debian packages of the program, the library and the compiled Python module
SHA256SUMS

Without options all are made: the program in build-static (cmake -DFORETRACE_STATIC=ON), WebAssembly in build-explorer, and the Debian
packages from build, if it is there. With --arch only the program and the wheel of another machine are made, in build-static-arm64 by
Debian's cross compiler, and put beside the others (scripts/setup.sh arm64). With --build only the program and the wheel of that build
folder are made, and those whose folders are named: --node has foretrace.js, --packages was built as a whole. Before anything is written,
the program must answer a question as the tests expect it, to the byte, in an empty folder, as root with nothing else in its file system.
One of another machine runs in QEMU.
"""

import argparse
import base64
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
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUESTION = ROOT / "tests" / "golden" / "predict-loader"
SUMMARY = "Predicts from one trace how long a training job would take after a change"
HOMEPAGE = re.search(r"HOMEPAGE_URL (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
# The command of the wheel. pip writes the path of its Python into the first line.
COMMAND = """#!python
import importlib.util, os, sys
program = os.path.join(importlib.util.find_spec("foretrace").submodule_search_locations[0], "program", "bin", "foretrace")
os.execv(program, [program, *sys.argv[1:]])
"""
# How CMake is asked for the program of another machine. Debian's own C library comes first, as the compiler's copy is never updated.
COMPILER, EMULATOR = "/usr/bin/aarch64-linux-gnu-g++", "/usr/bin/qemu-aarch64-static"
CROSS = {"arm64": ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={COMPILER}",
                   "-DCMAKE_EXE_LINKER_FLAGS=-L/usr/lib/aarch64-linux-gnu", f"-DCMAKE_CROSSCOMPILING_EMULATOR={EMULATOR}")}
# Header-only libraries are not part of the link line.
HEADERS = ("nlohmann-json3-dev", "libcli11-dev", "libboost-dev")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def cached(build, name):
    """A variable of a build folder, empty if it has none."""
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else ""


def built(arch):
    if arch and not (os.path.exists(COMPILER) and os.path.exists(EMULATOR)):
        sys.exit(f"release: {arch} needs {COMPILER} and {EMULATOR}: scripts/setup.sh {arch}")
    folder = ROOT / (f"build-static-{arch}" if arch else "build-static")
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFORETRACE_STATIC=ON", "-DFORETRACE_TESTS=OFF",
        "-DFORETRACE_UNITY=ON", *CROSS.get(arch, ()))
    run("cmake", "--build", folder)
    return folder


def installed(build, folder):
    """The program and the libraries that it loads into others, stripped, without traces of the build machine."""
    run("cmake", "--install", build, "--prefix", folder, "--component", "program", "--strip", stdout=subprocess.DEVNULL)
    return folder


def check(program, is_static, emulator):
    """Checks that the program answers as it should, alone in its file system if this process may change the root."""
    with tempfile.TemporaryDirectory() as empty:
        asked = (QUESTION / "cmd").read_text().split()
        os.mkdir(f"{empty}/traces")
        shutil.copy(ROOT / asked[1], f"{empty}/traces")
        programs = [f"./{pathlib.Path(shutil.copy(one, empty)).name}" for one in (emulator, program) if one]
        alone = is_static and os.geteuid() == 0
        done = subprocess.run([*programs, *asked, "--no-cache", "--quiet"], cwd=empty, capture_output=True, text=True, check=False,
                              preexec_fn=(lambda: os.chroot(empty)) if alone else None)
        if f"{done.stdout}-- exit code {done.returncode}\n" != (QUESTION / "expected.txt").read_text():
            sys.exit(f"release: the program does not answer as {QUESTION} does: {done.stdout}{done.stderr}")


def packages(build):
    """{name: version} of Debian's packages in the program."""
    links = subprocess.run(["ninja", "-C", build, "-t", "commands", "foretrace"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    files = sorted(set(re.findall(r"(/usr/lib/\S+\.(?:a|so))", links)))
    files += subprocess.run([cached(build, "CMAKE_CXX_COMPILER"), "-print-file-name=libstdc++.a"], capture_output=True, text=True, check=True).stdout.split()
    owners = subprocess.run(["dpkg-query", "-S", *files], capture_output=True, text=True, check=False).stdout.splitlines()
    names = {owner.split(":")[0] for owner in owners} | set(HEADERS) | {"libc6-dev"}
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


def packed(folder, path, top):
    """Packs files into a folder `top`, reproducibly: the same files give the same bytes."""
    def plain(member):
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    with gzip.GzipFile(path, "wb", mtime=0) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for one in sorted(folder.rglob("*")):
            if one.is_file():
                archive.add(one, pathlib.Path(top) / one.relative_to(folder), filter=plain)


def wheel_tag(machine, is_static):
    """A static program runs on any Linux; what `collect` loads into a program needs the C library that it was linked with."""
    return f"py3-none-manylinux2014_{machine}.musllinux_1_1_{machine}" if is_static else f"py3-none-linux_{machine}"


def wheel(folder, version, tag, out):
    """Packs the program of `folder` and the Python module into a wheel, reproducibly. Returns its path."""
    info = f"foretrace-{version}.dist-info"
    files = {f"foretrace/{path.name}": (path.read_bytes(), 0o644) for path in sorted((ROOT / "src" / "python" / "foretrace").glob("*.py*"))}
    for part in ("bin", "lib/foretrace"):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file():
                files[f"foretrace/program/{path.relative_to(folder)}"] = (path.read_bytes(), path.stat().st_mode & 0o777)
    files[f"foretrace-{version}.data/scripts/foretrace"] = (COMMAND.encode(), 0o755)
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: foretrace\nVersion: {version}\nSummary: {SUMMARY}\nHome-page: {HOMEPAGE}\n"
                                 f"Author: foretrace developers\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"
                                 "Provides-Extra: tables\nRequires-Dist: pandas; extra == 'tables'\n"
                                 "Provides-Extra: figures\nRequires-Dist: matplotlib; extra == 'figures'\n".encode(), 0o644)
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tag.removeprefix("py3-none-").split("."))
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: release.py\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644)
    files[f"{info}/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), 0o644)

    def digest(content):
        return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    path = out / f"foretrace-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, mode) in files.items():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            archive.writestr(member, content)
    return path


def npm_package(node, version, out):
    """Packs foretrace.js and foretrace.wasm of the folder `node` for npm. Returns the path of the package."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in ("foretrace.js", "foretrace.wasm"):
            shutil.copy(node / name, folder)
        program = folder / "foretrace.js"
        # Emscripten would fetch the module where there is a fetch(), and that of Node takes no files.
        program.write_text("#!/usr/bin/env node\nglobalThis.fetch = undefined;\n" + program.read_text())
        program.chmod(0o755)
        shutil.copy(ROOT / "LICENSE", folder)
        (folder / "README.md").write_text(f"# Foretrace\n\n{SUMMARY}: `npx foretrace advise trace.json.gz`. {HOMEPAGE}\n")
        (folder / "package.json").write_text(json.dumps(
            {"name": "foretrace", "version": version, "description": SUMMARY, "homepage": HOMEPAGE, "license": "Apache-2.0",
             "author": "foretrace developers", "bin": {"foretrace": "foretrace.js"}, "files": ["foretrace.js", "foretrace.wasm"],
             "engines": {"node": ">=18"}}, indent=1) + "\n")
        path = out / f"foretrace-{version}.tgz"
        packed(folder, path, "package")
    return path


def debian_packages(build, out):
    """Makes the packages of a build folder. Returns their paths."""
    shutil.rmtree(build / "packages", ignore_errors=True)
    run("cpack", "--config", build / "CPackConfig.cmake", stdout=subprocess.DEVNULL)
    return [pathlib.Path(shutil.copy(path, out)) for path in sorted((build / "packages").glob("*.deb"))]


def built_for_node():
    """Builds the program as WebAssembly. Returns its folder, or None where the tools are missing."""
    done = subprocess.run([ROOT / "scripts" / "explorer.py", "--node"], check=False)
    if done.returncode == 77:
        return None
    done.check_returncode()
    return ROOT / "build-explorer" / "node"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--arch", choices=CROSS)
    one.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--node", type=pathlib.Path)
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-release")
    asked = parser.parse_args()
    build, node, debian = asked.build, asked.node, asked.packages
    if asked.arch:
        build = built(asked.arch)
    elif not build:
        build, node = built(None), node or built_for_node()
        debian = debian or (ROOT / "build" if (ROOT / "build" / "CPackConfig.cmake").exists() else None)
    is_static, machine = cached(build, "FORETRACE_STATIC") == "ON", cached(build, "CMAKE_SYSTEM_PROCESSOR") or platform.machine()
    version = re.search(r'kVersion = "([\d.]+)"', (ROOT / "include" / "foretrace" / "version.h").read_text())[1]
    name = f"foretrace-{version}-linux-{machine}"
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = installed(build, pathlib.Path(temporary))
        check(folder / "bin" / "foretrace", is_static, cached(build, "CMAKE_CROSSCOMPILING_EMULATOR"))
        files = [asked.out / f"{name}.tar.gz", asked.out / f"{name}.spdx.json", wheel(folder, version, wheel_tag(machine, is_static), asked.out)]
        packed(folder, files[0], name)
    files[1].write_text(json.dumps(described(version, packages(build)), indent=1) + "\n")
    files += [npm_package(node, version, asked.out)] if node else []
    files += debian_packages(debian, asked.out) if debian else []
    together = sorted(file for file in asked.out.iterdir() if file.is_file() and file.name != "SHA256SUMS")
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in together)
    (asked.out / "SHA256SUMS").write_text(sums)
    for file in files:
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file}")
    for made, what in ((node, "npm package: scripts/setup.sh explorer"), (debian, "Debian packages: build all with scripts/test.sh first")):
        if not made and not asked.build and not asked.arch:
            print(f"left out: the {what}", file=sys.stderr)


if __name__ == "__main__":
    main()
