"""Builds a wheel of the Python module: pip wheel src/python

CMake builds the module, so what scripts/setup.sh installs must be there. $FORETRACE_BUILD names a build folder that is there already.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from setuptools import Distribution, Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Build(build_ext):
    def build_extension(self, extension):
        folder = pathlib.Path(os.environ.get("FORETRACE_BUILD", pathlib.Path(self.build_temp).resolve() / "foretrace"))
        if not (folder / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFORETRACE_PYTHON=ON"], check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "foretrace_python"], check=True)
        built, = (folder / "python" / "foretrace").glob("_foretrace.*")
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(built, target)


class WithLibraries(Distribution):
    def has_ext_modules(self):
        return True


WORK = tempfile.mkdtemp(prefix="foretrace-wheel-")  # So that no build files are left among the sources.

setup(
    options={"build": {"build_base": WORK}, "egg_info": {"egg_base": WORK}},
    name="foretrace",
    version=re.search(r'kVersion = "([\d.]+)"', (ROOT / "include" / "foretrace" / "version.h").read_text())[1],
    description="Predicts from one trace how long a training job would take after a change",
    packages=["foretrace"],
    package_data={"foretrace": ["py.typed"]},
    ext_modules=[Extension("foretrace._foretrace", [])],
    cmdclass={"build_ext": Build},
    distclass=WithLibraries,
    extras_require={"tables": ["pandas"], "figures": ["matplotlib"]},
    python_requires=">=3.9",
)
