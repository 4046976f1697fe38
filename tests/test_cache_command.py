"""python -m gpureduce cache, and packs: none of it needs a device. The architectures are such that
no pack is made for."""

import os
import signal
import subprocess
import sys

import pytest

import gpureduce
from gpureduce import _core, cache, pack

HAS_DEVICE = bool(_core.device_count()[0])
FEW = "read_only"  # a word of one kernel's name, which compiles in 0.05 s

needs_nvrtc = pytest.mark.skipif(
    not _core.compiler("sm_90")[0], reason=f"no NVRTC: {_core.compiler('sm_90')[1]}"
)


@pytest.fixture
def run(tmp_path):
    """What the command prints, with a cache of its own."""

    def run(*arguments, fails=False, **environment):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), **environment}
        command = [sys.executable, "-m", "gpureduce", "cache", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert bool(done.returncode) is fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


@needs_nvrtc
def test_warm_show_and_clear(run, tmp_path):
    assert "1 of 1 kernels, 0 of them there already" in run("warm", FEW, "--arch", "87")
    assert "1 of 1 kernels, 1 of them there already" in run("warm", FEW, "--arch", "8.7")
    shown = run()
    assert f"{tmp_path}/gpureduce" in shown and "1 kernel, " in shown and "NVRTC" in shown
    (tmp_path / "gpureduce/0.1.2.part").write_bytes(b"of a process that was killed")
    assert run("clear") == "2 kernels removed\n"
    assert not list((tmp_path / "gpureduce").iterdir())
    assert run("clear") == "0 kernels removed\n"


@needs_nvrtc
def test_each_architecture_has_its_own(run):
    for arch in ("87", "88"):
        assert "0 of them there already" in run("warm", FEW, "--arch", arch)


def test_what_cannot_be_is_said(run):
    assert "ninety is no architecture" in run("warm", FEW, "--arch", "ninety", fails=True)
    assert "no NVRTC" in run("warm", FEW, "--arch", "87", fails=True, GPUREDUCE_NVRTC="/none")
    assert "neither" in run("warm", FEW, "--arch", "87", fails=True, XDG_CACHE_HOME="", HOME="")
    if HAS_DEVICE:
        pytest.skip("the device here is the architecture that is meant")
    assert "--arch 90" in run("warm", FEW, fails=True)


def test_no_cache_is_shown(run):
    assert "none: neither" in run("show", XDG_CACHE_HOME="", HOME="")


def test_a_pack_gives_what_was_put_in(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "BLOCK_BYTES", 1000)
    kernels = [(f"{i:032x}", os.urandom(10 + 37 * i)) for i in range(40)]
    path = tmp_path / "packs" / "sm_90.pack"
    pack.write(path, [kernels[:25], kernels[25:]])
    made = pack.Pack(path)
    assert len(made.blocks) > 5
    for key, image in [*kernels, *reversed(kernels)]:
        assert made.find(key) == image
    assert made.find(f"{99:032x}") is None


def test_what_is_no_pack_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "FOLDER", tmp_path)
    (tmp_path / "sm_90.pack").write_bytes(b"something else")
    (tmp_path / "sm_80.pack").write_bytes(pack.MAGIC + b"\0")
    for arch in ("sm_90", "sm_80", "sm_75"):
        monkeypatch.setattr(pack, "_open", {})
        assert pack.find(arch, f"{0:032x}") is None


def test_programs_are_listed():
    programs = _core.programs()
    assert len(programs) > 1000 and ("gather", "", "gpu/gather.cuh") in programs
    with pytest.raises(IndexError, match="programs, numbered from 0"):
        _core.program_image(len(programs), "sm_90")
    with pytest.raises(ValueError, match="sm_90"):
        _core.program_image(0, "ninety")


@needs_nvrtc
def test_images_are_of_an_architecture_that_the_compiler_knows():
    with pytest.raises(gpureduce.DeviceError, match=r"does not know the architecture 20.*pip"):
        _core.program_image(1, "sm_20")


def test_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "gpureduce"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/someone")
    assert str(cache.folder()) == "/home/someone/.cache/gpureduce"


@needs_nvrtc
def test_warm_says_what_it_cannot(run, tmp_path):
    assert "no kernel has nosuchword" in run("warm", "nosuchword", "--arch", "87", fails=True)
    (tmp_path / "file").touch()
    said = run("warm", FEW, "--arch", "87", fails=True, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert f"kernels cannot be kept in {tmp_path}/file" in said


@needs_nvrtc
def test_ctrl_c_ends_a_warming(tmp_path):
    command = [sys.executable, "-m", "gpureduce", "cache", "warm", "--arch", "87", "--jobs", "2"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert " kernels, 0 of them there already" in process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=20) in (130, 1)
