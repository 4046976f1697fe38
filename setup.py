"""Builds gpureduce._core by a C and a C++ compiler; device code is compiled when it is needed.

Environment: CC, CXX; GPUREDUCE_SANITIZE="address,undefined"; GPUREDUCE_DEBUG=1;
GPUREDUCE_COVERAGE=1; GPUREDUCE_WERROR=1 turns warnings into errors; GPUREDUCE_MANYLINUX=1 asks for
no function of a newer glibc than 2.28; GPUREDUCE_NATIVE=1 builds for this processor alone, and
sanitized kernels without optimization.
"""

import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Exactness depends on these and on nothing else: no contraction into fused multiply-adds, no
# reassociation, no flushing of subnormals, wrap-around instead of undefined overflow.
EXACT = ["-ffp-contract=off", "-fno-fast-math", "-fwrapv"]


def switched(name):
    return os.environ.get(f"GPUREDUCE_{name}") == "1"


SANITIZERS = [name for name in os.environ.get("GPUREDUCE_SANITIZE", "").split(",") if name]
SANITIZE = [f"-fsanitize={name}" for name in SANITIZERS]
if SANITIZE:
    SANITIZE += ["-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
COVERAGE = ["--coverage"] if switched("COVERAGE") else []
# Names of lines would be half of the library.
LINES = ["-g1"] if SANITIZE or COVERAGE else []
WARN = ["-Wall", "-Wextra", *(["-Werror"] if switched("WERROR") else [])]
COMMON = ["-fPIC", "-fvisibility=hidden", *EXACT, *WARN, *SANITIZE, *COVERAGE]
DEBUG = ["-Og", "-g3"] if switched("DEBUG") else []
# Libraries that glibc has taken in since: by their files' names, so that the module names them.
OLD_GLIBC = ["-include", "recipe/old_glibc.h"] if switched("MANYLINUX") else []
OLD_LIBRARIES = ["-Wl,--no-as-needed", "-l:libpthread.so.0", "-l:libdl.so.2"] if OLD_GLIBC else []
C_FLAGS = ["-std=c11", *(DEBUG or ["-O2", *LINES]), *COMMON, *OLD_GLIBC]
# The extension links no libstdc++.
CXX_FLAGS = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", *COMMON]
# Of -O3 what costs a third of the time to compile and gains nothing here. What is left unrolls
# loops of constant length, which sums and extremes of columns live by.
LEAN = ["-fno-ipa-cp-clone", "-fno-split-paths", "-fno-gcse-after-reload"]
LEAN += ["-fno-version-loops-for-strides", "-fno-loop-unroll-and-jam", "-fno-unswitch-loops"]
LEAN += ["--param=max-inline-insns-auto=15", "--param=max-inline-insns-single=70"]
LEAN += ["--param=early-inlining-insns=6", "--param=inline-min-speedup=30"]
# No vectors of half the width for what whole ones leave over: less code.
LEAN += ["--param=vect-epilogues-nomask=0"]
FAST = ["-O3", *LEAN, *LINES]
if SANITIZE:  # -O1 takes twice as long to compile, and is faster only where all tests run
    # -w: of loops' annotations, which nothing follows without optimization.
    FAST = [*(["-O0", "-w"] if switched("NATIVE") else ["-O1"]), *LINES]
# -fno-trapping-math lets comparisons of floats be vectorised; nothing here reads trap flags.
CPU_FLAGS = [*CXX_FLAGS, "-fno-trapping-math", *(DEBUG or FAST)]
# Headers of device code, read for their types alone.
TABLE_FLAGS = [*CXX_FLAGS, *(DEBUG or ["-O3", *LINES]), "-Wno-unknown-pragmas", "-DGPR_ISA=gpu"]

# kernels/cpu/table.cpp is compiled once for each; csrc/cpu.c chooses when it first runs.
LEVELS = {"plain": ["-march=native"] if switched("NATIVE") else []}
if platform.machine() in ("x86_64", "AMD64") and not switched("NATIVE"):
    LEVELS = {  # the longest first
        "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
        # GCC else copies vectors by halves, which loads of whole ones then wait for. A loop of 60
        # bytes that began anywhere took 55 us in place of 42 on Zen 5.
        "v3": ["-march=x86-64-v3", "-mmove-max=256", "-mstore-max=256", "-falign-loops=64"],
        "plain": [] if DEBUG else ["-O1"],  # no x86 machine of the last ten years runs it
    }
LEVEL_DEFINES = ["-DGPR_X86_LEVELS"] if len(LEVELS) > 1 else []

# The one place where the version stands is the public header; the library is compatible within the
# first two of its numbers.
HEADER = "csrc/gpureduce.h"
VERSION = re.search(r'#define GPUREDUCE_VERSION "(.*)"', Path(HEADER).read_text())[1]
SONAME = f"libgpureduce.so.{VERSION.rpartition('.')[0]}"
PKG_CONFIG = """\
prefix=@prefix@
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: gpureduce
Description: exact and reproducible reductions of arrays
Version: {version}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lgpureduce
Libs.private: {private}
"""

CC = os.environ.get("CC", "gcc")
CXX = os.environ.get("CXX", "g++")
TABLES = ("kernels/gpu/table.cpp", "kernels/textbook/table.cpp")


# --- headers that the library carries, to be compiled for a device -------------------------------


def name_of(path):
    """What the compiler knows a header by: its path in kernels/, or a C header's own name."""
    return Path(os.path.normpath(path)).relative_to("kernels").as_posix().removeprefix("nvrtc/")


def code_of(path):
    """The file without its comments, line by line where it was, that names what it includes as
    name_of() does: one name for a header, whichever folder it is included from."""
    text = Path(path).read_text()
    text = re.sub(
        r"/\*.*?\*/|//[^\n]*", lambda found: "\n" * found[0].count("\n") or " ", text, flags=re.S
    )
    return re.sub(
        r'^#include "(.*)"',
        lambda found: f'#include "{name_of(path.parent / found[1])}"',
        text,
        flags=re.M,
    )


def included(path, known):
    """All files that the file includes, directly or not; `known` has those that were seen."""
    for opening, name in re.findall(r'^#include (["<])(.*)[">]', code_of(path), re.M):
        file = Path("kernels/nvrtc" if opening == "<" else "kernels") / name
        if file not in known:
            known.add(file)
            included(file, known)
    return known


def headers_c():
    """The text of a C file with kernels/'s headers of device code, and a digest of what each one
    that programs may name includes."""
    roots = sorted(Path("kernels").rglob("*.cuh"))
    names, digests = {}, {}
    for root in roots:
        files = sorted({root} | included(root, set()))
        for file in files:
            assert names.setdefault(name_of(file), file) == file, f"{file}: two of this name"
        texts = [code_of(file) for file in files]
        digests[root] = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    rows = [
        f"{{{json.dumps(name)}, text_{number}, {json.dumps(digests.get(file, ''))}}},"
        for number, (name, file) in enumerate(sorted(names.items()))
    ]
    texts = [
        f"static const char text_{number}[] =\n"
        + "\n".join(json.dumps(line + "\n") for line in code_of(file).split("\n"))
        + ";"
        for number, (name, file) in enumerate(sorted(names.items()))
    ]
    return "\n".join(
        [
            '#include "csrc/cuda/nvrtc.h"',
            *texts,
            "const gpr_header gpr_headers[] = {",
            *rows,
            "};",
            f"const int gpr_header_count = {len(rows)};",
            "",
        ]
    )


# --- the build -----------------------------------------------------------------------------------


class Build(build_ext):
    """build_ext that knows flags by language, and one more object for each instruction set."""

    def finalize_options(self):
        super().finalize_options()
        self.force = True  # always link: compile() knows what is out of date, setuptools does not
        # One place, also where pip asks for a temporary one, so that objects are found again.
        variants = [*SANITIZERS, *(name for name in ("DEBUG", "COVERAGE") if switched(name))]
        self.build_temp = "-".join(["build/objects", *variants]).lower()

    def build_extension(self, ext):
        work = Path(self.build_temp)
        work.mkdir(parents=True, exist_ok=True)
        c = [CC, *C_FLAGS, *LEVEL_DEFINES, *(f"-I{path}" for path in self.include_dirs)]
        c += ["-isystem", numpy.get_include()]
        jobs = [
            (
                [CXX, *CPU_FLAGS, *flags, *LEVEL_DEFINES, f"-DGPR_ISA={level}"],
                "kernels/cpu/table.cpp",
                level,
            )
            for level, flags in LEVELS.items()
        ]
        own = FAST if SANITIZE else ["-O2", *LINES]
        words = [CXX, *CXX_FLAGS, *(DEBUG or own), "-DGPR_ISA=words"]
        jobs += [(words, "kernels/cpu/partials.cpp", "")]
        jobs += [([CXX, *TABLE_FLAGS], name, "") for name in TABLES]
        jobs += [([*c, "-I."], self.generate(work), "")]
        sources = [Path("kernels/abi/lists.c"), *sorted(Path("csrc").rglob("*.c"))]
        jobs += [(c, source, "") for source in sources]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(lambda job: self.compile(*job, work), jobs))
        ext.extra_objects = made
        self.archive(ext, work)
        super().build_extension(ext)

    def generate(self, work):
        target = work / "headers.c"
        text = headers_c()
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
        return target

    def archive(self, ext, work):
        """The library without Python, static and shared, and what to link it with."""
        library = work / "libgpureduce.a"
        library.unlink(missing_ok=True)
        objects = [name for name in ext.extra_objects if "csrc_python_" not in Path(name).name]
        subprocess.run(["ar", "rcsD", str(library), *objects], check=True)
        private = [*(f"-l{name}" for name in ext.libraries), "-lm"]
        flags = [str(library.resolve()), *private, *SANITIZE, *COVERAGE]
        library.with_suffix(".flags").write_text(shlex.join(flags) + "\n")
        text = PKG_CONFIG.format(version=VERSION, private=" ".join(private))
        (work / "gpureduce.pc").write_text(text)
        if not SANITIZE:
            shared = ["-shared", f"-Wl,-soname,{SONAME}", "-Wl,-z,defs", *COVERAGE]
            shared += OLD_LIBRARIES
            shared += [*objects, *private, "-o", str(work / SONAME)]
            subprocess.run([CC, *shared], check=True)

    def compile(self, command, source, level, work):
        """One object, unless the same command made it and nothing that it includes is newer."""
        source = Path(source)
        name = "_".join([*source.parts[:-1], source.name]).removeprefix(f"{work}".replace("/", "_"))
        target = work / level / f"{name.lstrip('_')}.o"
        made_by, depends = target.with_suffix(".command"), target.with_suffix(".d")
        command = [*command, "-MMD", "-MF", str(depends), "-c", str(source), "-o", str(target)]
        if not is_current(target, made_by, depends, command):
            target.parent.mkdir(parents=True, exist_ok=True)
            start = time.monotonic()
            subprocess.run(command, check=True)
            what = f"{source} for {level}" if level else f"{source}"
            print(f"gpureduce: {what}, {time.monotonic() - start:.1f} s", flush=True)
            made_by.write_text(shlex.join(command))
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
    version=VERSION,
    ext_modules=[
        Extension(
            "gpureduce._core",
            sources=[],
            libraries=["pthread", "dl"],
            extra_link_args=[
                "-Wl,--version-script,csrc/python/module.map",
                *OLD_LIBRARIES,
                *SANITIZE,
                *COVERAGE,
            ],
        )
    ],
    cmdclass={"build_ext": Build},
)
