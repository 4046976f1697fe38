"""One compilation by NVRTC: a pickled question on stdin, the names and the image on stdout."""

import ctypes
import pickle
import sys


def compiled(path, source, kernels, options, is_ptx):
    nvrtc = ctypes.CDLL(path)
    program, size, lowered = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_char_p()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"op.cu", 0, None, None)
    assert not made
    for kernel in kernels:
        assert not nvrtc.nvrtcAddNameExpression(program, kernel.encode())
    words = [word.encode() for word in options]
    failed = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not failed, log.value.decode()
    names = []
    for kernel in kernels:
        assert not nvrtc.nvrtcGetLoweredName(program, kernel.encode(), ctypes.byref(lowered))
        names.append(lowered.value.decode())
    what = "PTX" if is_ptx else "CUBIN"
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    assert not getattr(nvrtc, f"nvrtcGet{what}")(program, image)
    return names, image.raw


if __name__ == "__main__":
    given = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps(compiled(*given)))
