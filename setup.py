"""Builds gpureduce._core: C and C++ by the host compiler, CUDA by nvcc where there is one.

Environment: CC, CXX, CUDA_HOME; GPUREDUCE_CUDA=0 leaves the GPU half out;
GPUREDUCE_CUDA_ARCHS="80 90" (default: all that nvcc knows from 75 on);
GPUREDUCE_SANITIZE="address,undefined"; GPUREDUCE_DEBUG=1; GPUREDUCE_COVERAGE=1;
GPUREDUCE_WERROR=1 turns warnings into errors; GPUREDUCE_PTX=1 keeps the kernels' PTX in
build/objects/ptx, where the tests find it.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Exactness depends on these and on nothing else: no contraction into fused multiply-adds, no
# reassociation, no flushing of subnormals, wrap-around instead of undefined overflow.
EXACT = ["-ffp-contract=off", "-fno-fast-math", "-fwrapv"]
EXACT_CUDA = ["--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"]


def switched(name):
    return os.environ.get(f"GPUREDUCE_{name}") == "1"


SANITIZERS = [name for name in os.environ.get("GPUREDUCE_SANITIZE", "").split(",") if name]
SANITIZE = [f"-fsanitize={name}" for name in SANITIZERS]
if SANITIZE:
    SANITIZE += ["-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
COVERAGE = ["--coverage"] if switched("COVERAGE") else []
WARN = ["-Wall", "-Wextra", *(["-Werror"] if switched("WERROR") else [])]
# -fno-trapping-math lets comparisons of floats be vectorised; nothing here reads trap flags.
# -funroll-loops: 10 to 40 % on min, max and products in the second cache.
OPTIMISE = ["-Og", "-g3"] if switched("DEBUG") else ["-O3", "-funroll-loops", "-g1"]
COMMON = ["-fPIC", "-fvisibility=hidden", *EXACT, *WARN, *SANITIZE, *COVERAGE]
C_FLAGS = ["-std=c11", *(["-Og", "-g3"] if switched("DEBUG") else ["-O2", "-g1"]), *COMMON]
# The extension links no libstdc++.
NO_RUNTIME = ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
CXX_FLAGS = ["-std=c++17", *NO_RUNTIME, "-fno-trapping-math", *OPTIMISE, *COMMON]
HOST_OF_CUDA = ["-fPIC", "-fvisibility=hidden", *EXACT, *NO_RUNTIME]
CUDA_FLAGS = ["-std=c++17", "-O3", "-lineinfo", *EXACT_CUDA]
if not switched("PTX"):  # what it keeps, nvcc's threads take away from each other
    CUDA_FLAGS += ["--threads=0"]
# 186: a template compares an unsigned integer with zero.
CUDA_FLAGS += ["--diag-suppress=186", f"--compiler-options={','.join(HOST_OF_CUDA)}"]
if switched("WERROR"):
    CUDA_FLAGS += ["--Werror=all-warnings"]

# kernels/cpu.cpp is compiled once for each; csrc/cpu.c chooses when it first runs.
LEVELS = {"plain": []}
if platform.machine() in ("x86_64", "AMD64"):
    LEVELS |= {
        "v3": ["-march=x86-64-v3"],
        "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }
LEVEL_DEFINES = ["-DGPR_X86_LEVELS"] if len(LEVELS) > 1 else []

CC = os.environ.get("CC", "gcc")
CXX = os.environ.get("CXX", "g++")


class Toolkit:
    """The CUDA Toolkit, or in `missing` why the GPU half is left out."""

    def __init__(self):
        self.sources = sorted(Path("kernels").glob("gpu*.cu"))
        self.nvcc = shutil.which("nvcc", path=os.path.expandvars("$CUDA_HOME/bin"))
        self.nvcc = self.nvcc or shutil.which("nvcc")
        self.missing = None
        if os.environ.get("GPUREDUCE_CUDA") == "0":
            self.missing = "GPUREDUCE_CUDA=0"
        elif not self.nvcc:
            self.missing = "no nvcc under CUDA_HOME or on PATH"
        elif not self.sources:
            self.missing = "no kernels/gpu.cu"

    def ask(self, *arguments):
        answer = subprocess.run([self.nvcc, *arguments], capture_output=True, text=True, check=True)
        return answer.stdout + answer.stderr

    def paths(self, what):
        """The paths of nvcc's own INCLUDES or LIBRARIES, wherever the toolkit is installed."""
        line = re.search(
            rf"^#\$ {what}=(.*)$", self.ask("-E", "-x", "cu", os.devnull, "--dryrun"), re.M
        )
        return [flag[2:] for flag in shlex.split(line[1])]

    def architectures(self):
        known = re.findall(r"compute_(\d+)", self.ask("--list-gpu-arch"))
        wish = os.environ.get("GPUREDUCE_CUDA_ARCHS", "").replace(",", " ").split()
        archs = sorted(wish or [a for a in known if int(a) >= 75], key=int)
        codes = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
        return [*codes, f"-gencode=arch=compute_{archs[-1]},code=compute_{archs[-1]}"]


class Build(build_ext):
    """build_ext that knows flags by language, one more object per instruction set, and nvcc."""

    def finalize_options(self):
        super().finalize_options()
        self.force = True  # always link: compile() knows what is out of date, setuptools does not
        # One place, also where pip asks for a temporary one, so that objects are found again.
        variants = [*SANITIZERS, *(name for name in ("DEBUG", "COVERAGE") if switched(name))]
        self.build_temp = "-".join(["build/objects", *variants]).lower()

    def build_extension(self, ext):
        work = Path(self.build_temp)
        toolkit = Toolkit()
        jobs = []
        c_flags = [*C_FLAGS, *LEVEL_DEFINES, *(f"-I{path}" for path in self.include_dirs)]
        c_flags += ["-isystem", numpy.get_include()]
        if toolkit.missing:
            print(f"gpureduce: {toolkit.missing}: the GPU half is left out", flush=True)
        else:
            command = [toolkit.nvcc, *CUDA_FLAGS, *toolkit.architectures()]
            jobs += [(command, source, work) for source in toolkit.sources]
            c_flags += [f"-isystem{path}" for path in toolkit.paths("INCLUDES")]
            ext.libraries = ["cudart_static", "rt", "dl", *ext.libraries]
            ext.library_dirs = toolkit.paths("LIBRARIES")
        for level, flags in LEVELS.items():
            command = [CXX, *CXX_FLAGS, *flags, *LEVEL_DEFINES, f"-DGPR_ISA={level}"]
            jobs.append((command, Path("kernels/cpu.cpp"), work / level))
        stand_in = Path("csrc/cuda/absent.c")
        absent = {*Path("csrc/cuda").glob("*.c")} - {stand_in} if toolkit.missing else {stand_in}
        c_sources = {Path("kernels/lists.c"), *Path("csrc").rglob("*.c")} - absent
        jobs += [([CC, *c_flags], source, work) for source in sorted(c_sources)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ext.extra_objects = list(pool.map(lambda job: self.compile(*job), jobs))
        self.archive(ext, work)
        super().build_extension(ext)

    def archive(self, ext, work):
        """The library without Python, and what a C compiler has to be told to link it."""
        python = {
            "module.c.o",
            "arguments.c.o",
            "descr.c.o",
            "foreign.c.o",
            "device_array.c.o",
        }
        library = work / "libgpureduce.a"
        library.unlink(missing_ok=True)
        objects = [name for name in ext.extra_objects if Path(name).name not in python]
        self.spawn(["ar", "rcsD", str(library), *objects])
        flags = [str(library.resolve()), *(f"-L{path}" for path in ext.library_dirs)]
        flags += [*(f"-l{name}" for name in ext.libraries), "-lm", *SANITIZE, *COVERAGE]
        library.with_suffix(".flags").write_text(shlex.join(flags) + "\n")

    def compile(self, command, source, work):
        """One object, unless the same command made it and nothing that it includes is newer."""
        target = work / f"{'_'.join(source.parts[1:])}.o"
        made_by, depends = target.with_suffix(".command"), target.with_suffix(".d")
        command = [*command, "-MMD", "-MF", str(depends), "-c", str(source), "-o", str(target)]
        kept = work / "ptx" / source.stem if switched("PTX") and source.suffix == ".cu" else None
        if kept:
            command += ["--keep", f"--keep-dir={kept}"]
        if not is_current(target, made_by, depends, command):
            (kept or work).mkdir(parents=True, exist_ok=True)
            self.spawn(command)
            made_by.write_text(shlex.join(command))
            for path in kept.iterdir() if kept else []:
                if path.suffix != ".ptx":
                    path.unlink()
        return str(target)


def is_current(target, made_by, depends, command):
    if not all(path.exists() for path in (target, made_by, depends)):
        return False
    listed = depends.read_text().replace("\\\n", " ").partition(":")[2]
    sources = [Path(name) for name in listed.split()]
    return made_by.read_text() == shlex.join(command) and all(
        path.exists() and path.stat().st_mtime <= target.stat().st_mtime for path in sources
    )


setup(
    ext_modules=[
        Extension(
            "gpureduce._core",
            sources=[],
            libraries=["pthread"],
            # A static cudart must not meet that of another extension.
            extra_link_args=["-Wl,--exclude-libs,ALL", *SANITIZE, *COVERAGE],
        )
    ],
    cmdclass={"build_ext": Build},
)
