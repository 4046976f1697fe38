"""Builds gpureduce._core: C and C++ by the host compiler, CUDA by nvcc where there is one.

Environment: CUDA_HOME; GPUREDUCE_CUDA=0 leaves the GPU half out; GPUREDUCE_CUDA_ARCHS="80 90";
GPUREDUCE_SANITIZE="address,undefined"; GPUREDUCE_DEBUG=1; GPUREDUCE_COVERAGE=1.
"""

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Exactness depends on these and on nothing else: no contraction into fused multiply-adds, no
# reassociation, no flushing of subnormals, wrap-around instead of undefined overflow.
EXACT = ["-ffp-contract=off", "-fno-fast-math", "-fwrapv"]
WARN = ["-Wall", "-Wextra", "-Werror"]
DEBUG = os.environ.get("GPUREDUCE_DEBUG") == "1"
# -fno-trapping-math lets comparisons of floats be vectorised; nothing here reads trap flags.
# -funroll-loops: 10 to 40 % on min, max and products in the second cache.
OPTIMISE = ["-Og", "-g3"] if DEBUG else ["-O3", "-funroll-loops", "-g1"]
SANITIZE = [
    f"-fsanitize={name}" for name in os.environ.get("GPUREDUCE_SANITIZE", "").split(",") if name
]
if SANITIZE:
    SANITIZE += ["-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
COVERAGE = ["--coverage"] if os.environ.get("GPUREDUCE_COVERAGE") == "1" else []
COMMON = ["-fvisibility=hidden", *EXACT, *WARN, *SANITIZE, *COVERAGE]
C_FLAGS = ["-std=c11", "-O2", "-g1", *COMMON]
CXX_FLAGS = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-trapping-math", *OPTIMISE, *COMMON]

# kernels/cpu.cpp is compiled once for each; csrc/cpu.c chooses when it first runs.
LEVELS = {"plain": []}
if platform.machine() in ("x86_64", "AMD64"):
    LEVELS |= {
        "v3": ["-march=x86-64-v3"],
        "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }


class Build(build_ext):
    """build_ext that knows flags by language, one more object per instruction set, and nvcc."""

    def build_extension(self, ext):
        work = Path(self.build_temp)
        defines = ["-DGPR_X86_LEVELS"] if len(LEVELS) > 1 else []
        jobs = []
        for level, flags in LEVELS.items():
            flags = [*CXX_FLAGS, *flags, *defines, f"-DGPR_ISA={level}"]
            jobs.append((Path("kernels/cpu.cpp"), work / level, flags))
        for source in sorted(Path("csrc").glob("*.c")) + [Path("kernels/lists.c")]:
            if source.name not in ABSENT:
                jobs.append((source, work, C_FLAGS + defines))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ext.extra_objects = list(pool.map(lambda job: self.compile(*job), jobs))
        ext.depends = ext.extra_objects  # or a changed object would not be linked again
        super().build_extension(ext)

    def compile(self, source, work, flags):
        """One object, unless it is newer than everything that it could depend on."""
        work.mkdir(parents=True, exist_ok=True)
        target = work / source.relative_to(source.parts[0]).with_suffix(".o")
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [self.compilers()[source.suffix], "-c", "-fPIC", str(source), "-o", str(target)]
        command += flags
        if source.suffix == ".c":
            command += [f"-I{path}" for path in [*self.include_dirs, numpy.get_include()]]
        stamp = target.with_suffix(".command")
        if not target.exists() or not stamp.exists() or stamp.read_text() != " ".join(command) or (
            target.stat().st_mtime < newest_source()
        ):
            self.spawn(command)
            stamp.write_text(" ".join(command))
        return str(target)

    @staticmethod
    def compilers():
        return {".c": os.environ.get("CC", "gcc"), ".cpp": os.environ.get("CXX", "g++")}


ABSENT = set()


def newest_source():
    rooms = [Path("csrc"), Path("kernels")]
    files = [path for room in rooms for path in room.rglob("*") if path.is_file()]
    return max(path.stat().st_mtime for path in [*files, Path("setup.py")])


setup(
    ext_modules=[
        Extension(
            "gpureduce._core",
            sources=[],
            libraries=["pthread"],
            extra_link_args=[*SANITIZE, *COVERAGE],
        )
    ],
    cmdclass={"build_ext": Build},
)
