"""Checks and times the kernels for many outputs on a device: python3 .dev/axes.py [check] [bars] [more]"""
import faulthandler; faulthandler.enable()
import ctypes, subprocess, sys, time, os, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = Path("/tmp/axes_build"); BUILD.mkdir(exist_ok=True)
t0 = time.time()
FLAGS = "-std=c++17 -O3 --fmad=false -arch=sm_90 --split-compile=0 -lineinfo -diag-suppress 186 -Xcompiler -fPIC".split()

def compile_one(src):
    obj = BUILD / (src.name + ".o")
    deps = [*ROOT.glob("kernels/*"), HERE / "driver.cu"]
    if obj.exists() and all(d.stat().st_mtime < obj.stat().st_mtime for d in deps):
        return str(obj)
    t = time.time()
    r = subprocess.run(["nvcc", *FLAGS, "-c", str(src), "-o", str(obj)], capture_output=True, text=True)
    if r.returncode: print(r.stdout, r.stderr); sys.exit(1)
    print(f"compiled {src.name} in {time.time()-t:.0f} s", flush=True)
    return str(obj)

if os.environ.get("AXES_LIB"): lib_path = Path(os.environ["AXES_LIB"])
sources = [] if os.environ.get("AXES_LIB") else sorted(ROOT.glob("kernels/gpu_axes*.cu")) + [HERE / "driver.cu"]
with ThreadPoolExecutor(16) as pool: objs = list(pool.map(compile_one, sources))
if sources: lib_path = BUILD / "axes.so"
if sources: subprocess.run(["nvcc", "-shared", "-o", str(lib_path), *objs], check=True)
if sources: print(f"built after {time.time()-t0:.0f} s", flush=True)

import cupy as cp
lib = ctypes.CDLL(str(lib_path))
lib.dev_time.restype = lib.dev_read.restype = ctypes.c_double
lib.dev_name.restype = ctypes.c_char_p
lib.dev_name.argtypes = [ctypes.c_int64]  # a bare int would be passed as 32 bits
lib.dev_attr.argtypes = [ctypes.c_int64, ctypes.c_void_p]
lib.dev_op.argtypes = lib.dev_dtype.argtypes = [ctypes.c_char_p]
I64 = ctypes.c_int64
def arr(v): return (I64 * max(len(v), 1))(*v)

# ---- the plan: kept and reduced dims, coalesced as the host does
def coalesce(dims):
    out = []
    for n, s, w in dims:
        if n == 1: continue
        if out and out[-1][1] == s * n and (out[-1][2] == w * n):
            out[-1] = (out[-1][0] * n, s, w)
        else: out.append((n, s, w))
    return out

def plan(shape, strides, axis, ordered=False, wstrides=None):
    nd = len(shape)
    axes = tuple(range(nd)) if axis is None else tuple(a % nd for a in (axis if isinstance(axis, tuple) else (axis,)))
    w = wstrides or [0] * nd
    kept = coalesce([(shape[d], strides[d], w[d]) for d in range(nd) if d not in axes])
    red = [(shape[d], strides[d], w[d]) for d in range(nd) if d in axes]
    if not ordered: red = sorted(red, key=lambda t: -abs(t[1]))
    red = coalesce(red) or [(1, red[-1][1] if red else 0, 0)]
    return kept, red

RESULT = {}
def result_dtype(op, dt):
    k = dt.kind
    if op in ("argmax", "argmin", "count_nonzero"): return np.dtype("i8")
    if op in ("any", "all"): return np.dtype("b1")
    if op in ("mean", "nanmean") and k in "biu": return np.dtype("f8")
    if op in ("sum", "prod", "nansum") and k in "bi": return np.dtype("i8")
    if op in ("sum", "prod") and k == "u": return np.dtype("u8")
    return dt

NAMES = {}
def dtname(dt): return getattr(dt, "gpr", None) or str(dt)

now = [""]
CASE = open(os.environ["AXES_CASE"], "w") if "AXES_CASE" in os.environ else None
def run(op, a, axis, where=None, initial=None, bf16=False, skip=False):
    """a: cupy array"""
    ordered = op.startswith("arg")
    w = None
    if where is not None:
        where = cp.broadcast_to(where, a.shape); w = list(where.strides)
    kept, red = plan(a.shape, a.strides, axis, ordered, w)
    dims = kept + red
    outputs = int(np.prod([k[0] for k in kept], dtype=np.int64)) if kept else 1
    rd = a.dtype if bf16 else result_dtype(op, a.dtype)
    out = cp.full(outputs, 0x55, dtype=np.uint8).repeat(rd.itemsize).view(rd) if False else cp.zeros(outputs, rd)
    out.view(np.uint8)[...] = 0x55
    info = (I64 * 8)()
    now[0] = f"{op} {a.dtype} {a.shape} strides {a.strides} axis {axis}{' masked' if where is not None else ''}{' initial' if initial is not None else ''}"
    if CASE: CASE.seek(0); CASE.truncate(); CASE.write(now[0]); CASE.flush()
    ini = None if initial is None else np.asarray(initial, rd).tobytes()
    r = lib.dev_run(lib.dev_op(op.encode()), lib.dev_dtype(b"bfloat16" if bf16 else str(a.dtype).encode()),
        ctypes.c_void_p(a.data.ptr), ctypes.c_void_p(where.data.ptr if where is not None else 0), ctypes.c_void_p(out.data.ptr),
        len(kept), len(red), arr([d[0] for d in dims]), arr([d[1] for d in dims]), arr([d[2] for d in dims]),
        ini, len(ini) if ini else 0, int(skip), info)
    if r: raise RuntimeError(f"{now[0]}: {r}")
    k = kernel_of(info); kernels[k] = kernels.get(k, 0) + 1
    return out.get(), info

def kernel_of(info):
    name = lib.dev_name(info[5]).decode()
    for k in ("staged", "columns", "general", "rows", "moments"):
        if k in name.split("I")[0] or k in name[:40]: return k
    return name[:40]

# ---- exact references
FORMATS = {"f2": (11, -24, 5), "bf": (8, -133, 8), "f4": (24, -149, 8), "f8": (53, -1074, 11)}
def round_ratio(num, e, den, fmt):
    """num·2^e/den to the bits of the format"""
    P, smallest, eb = FORMATS[fmt]
    inf = ((1 << eb) - 1) << (P - 1)
    sign = (1 << (P - 1 + eb)) if num < 0 else 0
    num = abs(num)
    if num == 0: return 0
    shift = P + 3 - (num.bit_length() - den.bit_length())
    if shift > 0: num <<= shift; e -= shift
    q, r = divmod(num, den)
    hi = q.bit_length() - 1 + e
    last = max(hi - P + 1, smallest)
    drop = last - e
    if drop <= 0: kept, rest = q << -drop, 0; half = 0
    else:
        kept = q >> drop; low = q & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        if low > half or (low == half and (r or kept & 1)): kept += 1
    res = kept + ((last - smallest) << (P - 1))
    return sign | min(res, inf)

def to_double(a, bf16):
    if bf16: return (a.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return a.astype(np.float64)

UT = {2: np.uint16, 4: np.uint32, 8: np.uint64}
def exact_real(rows, dtype, bf16, mean, counts=None, initial=None):
    """rows: (outputs, count) reals of the dtype -> bits; NaN is the one quiet NaN."""
    fmt = "bf" if bf16 else dtype.str[1:]
    P, smallest, eb = FORMATS[fmt]
    d = to_double(rows, bf16)
    n_out, n = d.shape
    fin = np.isfinite(d)
    m, e = np.frexp(np.where(fin, d, 0))
    mi = (m * 2.0**53).astype(np.int64)
    hi, lo = mi >> 27, mi & ((1 << 27) - 1)
    nan = np.isnan(d).any(1) | ((d == np.inf).any(1) & (d == -np.inf).any(1))
    pinf, ninf = (d == np.inf).any(1), (d == -np.inf).any(1)
    negzero = ((d == 0) & np.signbit(d)).all(1) & (n > 0)
    emin = int(e.min()) if e.size else 0
    span = (int(e.max()) - emin + 1) if e.size else 1
    inf = ((1 << eb) - 1) << (P - 1); sgn = 1 << (P - 1 + eb)
    out = np.zeros(n_out, UT[dtype.itemsize])
    chunk = max(1, 2_000_000 // span)
    for c0 in range(0, n_out, chunk):
        c1 = min(n_out, c0 + chunk)
        key = (np.arange(c1 - c0)[:, None] * span + (e[c0:c1] - emin)).ravel()
        H = np.bincount(key, hi[c0:c1].ravel().astype(float), minlength=(c1 - c0) * span).reshape(c1 - c0, span)
        L = np.bincount(key, lo[c0:c1].ravel().astype(float), minlength=(c1 - c0) * span).reshape(c1 - c0, span)
        for i in range(c0, c1):
            if nan[i]: out[i] = inf | 1 << (P - 2); continue
            if pinf[i]: out[i] = inf; continue
            if ninf[i]: out[i] = sgn | inf; continue
            total = 0
            for j in np.flatnonzero((H[i - c0] != 0) | (L[i - c0] != 0)):
                total += ((int(H[i - c0, j]) << 27) + int(L[i - c0, j])) << int(j)
            num, ex = total, emin - 53
            den = 1
            if mean: den = int(counts[i]) if counts is not None else n
            if initial is not None:
                im, ie = np.frexp(float(initial)); k = int(im * 2.0**53); s = int(ie) - emin
                if s >= 0: num += k << s
                else: num = (num << -s) + k; ex += s
            if den == 0: out[i] = inf | 1 << (P - 2); continue
            if num == 0: out[i] = sgn if negzero[i] and initial is None else 0
            else: out[i] = round_ratio(num, ex, den, fmt)
    return out

def exact(rows, mean, bf16=False, **k):
    dt = rows.dtype
    if dt.kind == "c":
        r = exact_real(np.ascontiguousarray(rows.real), rows.real.dtype, False, mean, **k)
        i = exact_real(np.ascontiguousarray(rows.imag), rows.real.dtype, False, mean, **k)
        return np.stack([r, i], 1).ravel()
    return exact_real(rows, dt, bf16, mean, **k)

def as_rows(a, axis):
    nd = a.ndim
    axes = tuple(range(nd)) if axis is None else tuple(x % nd for x in (axis if isinstance(axis, tuple) else (axis,)))
    keep = [d for d in range(nd) if d not in axes]
    n = int(np.prod([a.shape[d] for d in axes], dtype=np.int64))
    return np.ascontiguousarray(a.transpose(keep + list(axes))).reshape(-1, n)

def make(shape, dt, kind, rng):
    n = int(np.prod(shape))
    if dt == "bf16":
        x = make(shape, np.dtype("f4"), kind, rng)
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    dt = np.dtype(dt)
    if dt.kind == "c":
        r = make(shape, np.dtype(f"f{dt.itemsize // 2}"), kind, rng); i = make(shape, r.dtype, kind, rng)
        out = np.empty(shape, dt); out.real, out.imag = r, i; return out
    if dt.kind == "b": return rng.integers(0, 2, shape).astype(bool)
    if dt.kind in "iu":
        ii = np.iinfo(dt); return rng.integers(ii.min, ii.max, shape, dt, endpoint=True)
    if kind == "normal": return rng.standard_normal(shape).astype(dt)
    if kind == "arange": return (np.arange(n) % 30000).reshape(shape).astype(dt)
    if kind == "wide":
        with np.errstate(over="ignore"): return np.clip(rng.standard_normal(shape) * np.exp(10 * rng.standard_normal(shape)), -np.finfo(dt).max, np.finfo(dt).max).astype(dt)
    if kind == "bits":
        b = rng.integers(0, 2**63, n).astype(np.uint64) * 2 + rng.integers(0, 2, n).astype(np.uint64)
        x = b.astype(UT[dt.itemsize]).view(dt).reshape(shape).copy(); x[~np.isfinite(x)] = 1; return x
    if kind == "cancel":
        x = rng.standard_normal(n).astype(dt); x[1::2] = -x[: n // 2 * 2 : 2][: x[1::2].size]; return x.reshape(shape)
    if kind == "zeros": return np.full(shape, -0.0, dt)
    if kind == "sparse":
        x = rng.standard_normal(shape).astype(dt); x[rng.random(shape) < .9] = 0; return x
    if kind == "nan":
        x = rng.standard_normal(shape).astype(dt); r = rng.random(shape)
        x[r < 1e-3] = np.nan; x[(r > .5) & (r < .5005)] = np.inf; x[(r > .7) & (r < .7005)] = -np.inf; return x
    raise ValueError(kind)

SHAPES = [((5, 4), 1), ((5, 4), 0), ((1000, 7), 1), ((1000, 7), 0), ((777, 64), 1), ((777, 64), 0), ((64, 3000), 1), ((64, 3000), 0),
    ((3, 100_003), 1), ((3, 100_003), 0), ((100_003, 3), 0), ((100_003, 3), 1), ((2, 500_000), 1), ((500_000, 2), 0), ((1000, 1001), 0), ((1001, 1000), 1),
    ((4, 300, 256), 1), ((4, 300, 256), (0, 2)), ((4, 300, 256), (0, 1)), ((4, 300, 256), (1, 2)), ((7, 50, 3, 20), (1, 3)), ((300, 4096), 1), ((9, 8192), 1), ((4096, 300), 0),
    ((33, 1027), 1), ((1, 5), 1), ((5, 1), 1), ((1, 1), 0), ((128, 1024), 1), ((128, 256), 1), ((2000, 33), 1), ((2000, 12), 1), ((200_000,), 0), ((37, 2, 5000), 2)]

fails = 0
def compare(what, got, want, info):
    global fails
    got = np.ascontiguousarray(got); want = np.ascontiguousarray(want)
    g = got.view(np.uint8).reshape(-1); w = want.view(np.uint8).reshape(-1)
    if g.size != w.size or not np.array_equal(g, w):
        fails += 1
        if fails <= 40:
            size = max(1, want.itemsize)
            bad = np.flatnonzero((g.reshape(-1, size) != w.reshape(-1, size)).any(1)) if g.size == w.size else []
            print(f"FAIL {what} kernel {kernel_of(info)} blocks {info[0]} split {info[1]} team {info[2]} rows {info[3]}: {len(bad)} of {want.size} wrong, first {bad[:3]}, got {got.ravel()[bad[:3]]} want {want.ravel()[bad[:3]]}", flush=True)
        return False
    return True

def small_first(): return sorted(enumerate(SHAPES), key=lambda s: np.prod(s[1][0]))
cases = 0
kernels = {}
def real(dt):
    global cases
    rng = np.random.default_rng(1)
    kinds = ["normal", "arange", "wide", "bits", "cancel", "zeros", "nan", "sparse"]
    for si, (shape, axis) in small_first():
        picked = kinds if int(np.prod(shape)) < 60_000 and dt in ("f4", "f8") else [kinds[(si + k) % 8] for k in (0, 3, 5)][: 3 if dt in ("f4", "f8") else 1]
        for kind in picked:
            a = make(shape, dt, kind, rng)
            dev = cp.asarray(a)
            want = exact(as_rows(a, axis), False, dt == "bf16")
            got, info = run("sum", dev, axis, bf16=dt == "bf16")
            compare(f"sum {dt} {shape} axis {axis} {kind}", got.view(want.dtype), want, info)
            want = exact(as_rows(a, axis), True, dt == "bf16")
            got, info = run("mean", dev, axis, bf16=dt == "bf16")
            compare(f"mean {dt} {shape} axis {axis} {kind}", got.view(want.dtype), want, info)
            cases += 2
def free(dt):
    global cases
    rng = np.random.default_rng(2)
    for si, (shape, axis) in small_first():
        a = make(shape, dt, ["normal", "arange", "sparse"][si % 3], rng)
        if a.dtype.kind == "f": a = a + np.zeros((), a.dtype)
        dev = cp.asarray(a); rows = as_rows(a, axis)
        for op in ("max", "min", "argmax", "argmin", "any", "count_nonzero", *(("sum", "prod", "mean") if a.dtype.kind in "iub" else ())):
            got, info = run(op, dev, axis)
            if op == "count_nonzero": want = np.count_nonzero(rows, axis=1).astype("i8")
            elif op == "mean":
                s = rows.astype(object).sum(1); want = np.array([int(v) / rows.shape[1] if abs(int(v)) < 2**53 else float(__import__("fractions").Fraction(int(v), rows.shape[1])) for v in s])
            else: want = getattr(rows, op)(axis=1)
            want = np.asarray(want).astype(got.dtype)
            if want.dtype.kind == "f": want = want + 0; got = got + 0
            compare(f"{op} {a.dtype} {shape} axis {axis}", got, want, info); cases += 1
def layout(dt):
    global cases
    rng = np.random.default_rng(3)
    base = make((60, 70, 50), dt, "normal", rng); dev = cp.asarray(base)
    for name, view in {"T": lambda x: x.T, "::2": lambda x: x[::2], "last::2": lambda x: x[..., ::2], "rev": lambda x: x[::-1, :, ::-1], "mid": lambda x: x[:, 3:60, 7:29], "swap": lambda x: x.transpose(1, 0, 2), "off": lambda x: x[:, :, 1:]}.items():
        for axis in (0, 1, 2, (0, 1), (0, 2), (1, 2), None):
            a, d = view(base), view(dev); rows = as_rows(a, axis)
            mask = rng.random(a.shape) < .5
            for op in ("sum", "max", "argmin"):
                got, info = run(op, d, axis)
                want = exact(rows, False) if op == "sum" and a.dtype.kind == "f" else np.asarray(getattr(rows, op)(axis=1)).astype(got.dtype)
                compare(f"{op} {a.dtype} {name} axis {axis}", got.view(want.dtype), want, info); cases += 1
            got, info = run("sum", d, axis, where=cp.asarray(mask))
            wrows = np.where(as_rows(mask, axis), rows, rows.dtype.type(-0.0) if rows.dtype.kind == "f" else 0)
            want = exact(wrows, False) if a.dtype.kind == "f" else wrows.sum(1).astype(got.dtype)
            compare(f"masked sum {a.dtype} {name} axis {axis}", got.view(want.dtype), want, info)
            got, info = run("mean", d, axis, where=cp.asarray(mask))
            if a.dtype.kind == "f":
                want = exact(wrows, True, counts=as_rows(mask, axis).sum(1))
                compare(f"masked mean {a.dtype} {name} axis {axis}", got.view(want.dtype), want, info)
            if a.dtype.kind == "f":
                got, info = run("sum", d, axis, initial=2.5)
                want = exact(rows, False, initial=2.5)
                compare(f"initial sum {a.dtype} {name} axis {axis}", got.view(want.dtype), want, info)
            cases += 3

REAL, FREE, LAYOUT = ("f4", "f8", "f2", "bf16", "c8", "c16"), ("f4", "f8", "i1", "u1", "i2", "i4", "u4", "i8", "b1", "f2"), ("f4", "f8", "i4", "f2")
GROUPS = [*(("layout", d) for d in LAYOUT), *(("real", d) for d in REAL), *(("free", d) for d in FREE)]
def group(name, dt):
    """One group: stops after a CUDA error, which no other process feels; a hang is told after 40 s."""
    def told():
        print(f"HANG in {now[0]}", flush=True); os._exit(3)
    timer = threading.Timer(float(os.environ.get("AXES_HANG", 40)), told); timer.daemon = True; timer.start()
    try: globals()[name](dt)
    except RuntimeError as e: print("STOP", e, flush=True); os._exit(2)
    print(name, dt, cases, "cases", kernels, f"{time.time()-t0:.0f} s", f"{fails} FAILS" if fails else "ok", flush=True)

def check():
    global fails
    def one(g):
        case = BUILD / f"case_{g[0]}_{g[1]}"; case.write_text("its start")
        r = subprocess.run([sys.executable, str(HERE / "axes.py"), "group", *g], capture_output=True, text=True,
            env={**os.environ, "AXES_LIB": str(lib_path), "AXES_CASE": str(case)})
        bad = r.returncode != 0 or "FAILS" in r.stdout
        print(r.stdout.rstrip(), *([f"DIED rc {r.returncode} in {case.read_text()}", r.stderr[-1500:]] if r.returncode else []), sep="\n", flush=True)
        return bad
    with ThreadPoolExecutor(int(os.environ.get("AXES_JOBS", 10))) as pool: fails += sum(pool.map(one, GROUPS))
    print(f"check: {fails} groups of {len(GROUPS)} FAIL" if fails else "check: all groups ok", f"{time.time()-t0:.0f} s", flush=True)

LIMIT = 4687.0
def timing(op, dt, shape, axis, total=1 << 30, kind="normal", pool={}):
    dtype = np.dtype(dt); size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    copies = max(1, min(4, total // size))
    key = (dt, kind)
    if key not in pool:
        pool.clear()
        cp.get_default_memory_pool().free_all_blocks()
        n = (2 << 30) // dtype.itemsize
        x = cp.empty(n, dtype)
        for i in range(0, n, 1 << 26):
            m = min(1 << 26, n - i)
            y = cp.random.standard_normal(m, dtype=np.float32) if kind == "normal" else None
            if kind == "wide": y = cp.random.standard_normal(m, dtype=np.float32) * cp.exp(10 * cp.random.standard_normal(m, dtype=np.float32))
            x[i:i + m] = y if dtype.kind == "f" else (y * 1000).astype(dtype)
        pool[key] = x
    x = pool[key]
    strides = [dtype.itemsize]
    for n in shape[:0:-1]: strides.insert(0, strides[0] * n)
    kept, red = plan(shape, strides, axis, op.startswith("arg"))
    dims = kept + red
    outputs = int(np.prod([k[0] for k in kept], dtype=np.int64)) if kept else 1
    out = cp.zeros(outputs, np.int64)
    ptrs = (ctypes.c_void_p * copies)(*[x.data.ptr + i * size for i in range(copies)])
    times = max(8, min(40, (4 << 30) // size))
    ms = lib.dev_time(lib.dev_op(op.encode()), lib.dev_dtype(str(dtype).encode()), ptrs, copies, ctypes.c_void_p(out.data.ptr), len(kept), len(red),
        arr([d[0] for d in dims]), arr([d[1] for d in dims]), times, 0)
    if ms <= 0: raise RuntimeError(f"{op} {dt} {shape} axis {axis}: {ms}")
    return size / ms / 1e6

def read_limit():
    x = cp.zeros(1 << 30, np.uint8); never = cp.zeros(4, np.uint8)
    ptrs = (ctypes.c_void_p * 4)(*[x.data.ptr + (i << 28) for i in range(4)])
    ms = lib.dev_read(ptrs, 4, I64(1 << 28), ctypes.c_void_p(never.data.ptr), 40)
    one = (ctypes.c_void_p * 1)(x.data.ptr)
    ms1 = lib.dev_read(one, 1, I64(1 << 30), ctypes.c_void_p(never.data.ptr), 10)
    print(f"read limit: 256 MiB {(1<<28)/ms/1e6:.0f} GB/s, 1 GiB {(1<<30)/ms1/1e6:.0f} GB/s", flush=True)

def info_of(op, dt, shape, axis):
    a = cp.zeros(shape, dt); _, info = run(op, a, axis)
    at = (ctypes.c_int * 4)(); lib.dev_attr(I64(info[5]), at)
    return f"{kernel_of(info)} blocks {info[0]} split {info[1]} team {info[2]} rows {info[3]} | regs {at[0]} local {at[1]} smem {at[2]} resident {at[3]}"

def bars():
    faulthandler.dump_traceback_later(90, exit=True)
    read_limit()
    table = [((8192, 8192), 0, 85), ((8192, 8192), 1, 85), ((1 << 20, 64), 1, 85), ((1 << 20, 64), 0, 85), ((64, 1 << 20), 1, 85), ((64, 1 << 20), 0, 85),
        ((16, 4096, 4096), 1, 88), ((4, 1 << 26), 1, 88), ((1 << 26, 4), 0, 88), ((1 << 26, 4), 1, 80), ((1 << 24, 7), 1, 80)]
    for op in ("sum", "max", "argmax", "mean"):
        for shape, axis, bar in table:
            print(f"{op:7} f4 {str(shape):18} axis {axis}: ", end="", flush=True)
            gb = timing(op, "f4", shape, axis)
            bar = bar if op in ("sum", "max") else 75
            print(f"{gb:6.0f} GB/s {100*gb/LIMIT:5.1f} % {'' if 100*gb/LIMIT >= bar else 'BELOW ' + str(bar)}   {info_of(op, 'f4', shape, axis) if op != 'mean' else ''}", flush=True)
    for op in ("sum", "max"):
        for axis in (1, 0):
            print(f"sweep {op} axis {axis}, percent:", end="", flush=True)
            for k in range(27): print(f" {k}:{100*timing(op, 'f4', (1 << k, 1 << (26 - k)), axis)/LIMIT:.0f}", end="", flush=True)
            print(flush=True)
    print(f"{time.time()-t0:.0f} s", flush=True)
    faulthandler.cancel_dump_traceback_later()

def more():
    for dt in ("f8", "f2", "i4", "i1"):
        for op in ("sum", "max", "argmax"):
            line = []
            for shape, axis in [((8192, 8192), 0), ((8192, 8192), 1), ((1 << 20, 64), 1), ((1 << 20, 64), 0), ((64, 1 << 20), 1), ((1 << 24, 4), 1), ((1 << 24, 4), 0), ((1 << 23, 7), 1)]:
                shape = (shape[0] * (4 // np.dtype(dt).itemsize), shape[1]) if np.dtype(dt).itemsize < 4 else shape
                gb = timing(op, dt, shape, axis); line.append(f"{shape}/{axis}:{100*gb/LIMIT:.0f}")
            print(op, dt, " ".join(line), flush=True)
    for kind in ("wide",):
        line = []
        for shape, axis in [((8192, 8192), 0), ((8192, 8192), 1), ((1 << 20, 64), 1), ((1 << 20, 64), 0), ((64, 1 << 20), 1), ((1 << 26, 4), 1), ((1 << 26, 4), 0)]:
            gb = timing("sum", "f4", shape, axis, kind=kind); line.append(f"{shape}/{axis}:{100*gb/LIMIT:.0f}")
        print("sum f4", kind, " ".join(line), flush=True)
    print(f"{time.time()-t0:.0f} s", flush=True)

if __name__ == "__main__":
    if sys.argv[1:2] == ["group"]: group(*sys.argv[2:]); sys.exit()
    what = sys.argv[1:] or ["check", "bars", "more"]
    for w in what: globals()[w]()
    print("fails:", fails)
