"""The record of the last test run on a GPU: tests/gpu_record.json.

--write FOLDER makes it from the folder's *.xml (pytest) and TOOL.log (compute-sanitizer).
--check fails unless it is of the sources as they are now. CI has no GPU, but it has this.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_suffix(".json")
SUFFIXES = {".c", ".h", ".cuh", ".cpp", ".map"}
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
NVRTC = "from gpureduce import _core; print(_core.compiler('sm_90')[1])"
# What failed in the run of the record and was mended since without a byte of csrc/ or kernels/, in
# the tests or in gpureduce/, or is open and says so; to be emptied by the next run.
EXCUSED: dict[str, str] = {}
# Lines that the run of the record did not have and csrc/ or kernels/ have now: by file, with why no
# run was needed to let them in; each is there once. To be emptied by the next run.
SINCE: dict[str, tuple[str, str]] = {}
REMEDY = "run `make gpu-test` on a machine with a GPU"


# A literal is kept; a comment and a line's continuation are as good as a blank.
_PARTS = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//(?:\\\n|[^\n])*|/\*.*?\*/|\\\n""", re.S
)
_LITERAL = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
# Blanks that part no two words and no two operators, but not where they stand in a directive.
_BLANKS = re.compile(r"(?<=\w) (?!\w)|(?<!\w) (?=\w)|(?<=[][(){},;]) | (?=[][(){},;])")


def code(text: str) -> str:
    """C or C++ without comments, on as few lines as there are directives, without spare blanks."""
    lines = [""]
    for line in _PARTS.sub(lambda found: found[1] or " ", text).splitlines():
        is_directive = line.lstrip().startswith("#")
        lines[-1:] = [lines[-1], line, ""] if is_directive else [f"{lines[-1]} {line}"]
    return "\n".join(filter(None, map(_tidy, lines)))


def _tidy(line: str) -> str:
    parts = _LITERAL.split(line.strip())
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\s+", " ", parts[i])
        if not line.lstrip().startswith("#"):
            parts[i] = _BLANKS.sub("", parts[i]).strip()
    return "".join(parts)


def without(text: str, line: str) -> str:
    """Without a line that stands there once."""
    if text.count(line) != 1 or not line.endswith("\n"):
        raise ValueError(f"{line.strip()!r} is not one line of the file")
    return text.replace(line, "")


def digest(since: dict[str, tuple[str, str]] | None = None) -> str:
    """Of all sources of csrc/ and kernels/: names and code, without the lines that came since."""
    sha = hashlib.sha256()
    files = [path for room in ("csrc", "kernels") for path in (ROOT / room).rglob("*")]
    for path in sorted(path for path in files if path.suffix in SUFFIXES):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        if since and name in since:
            text = without(text, since[name][0])
        content = code(text).encode()
        sha.update(f"{name}\n{len(content)}\n".encode())
        sha.update(content)
    return sha.hexdigest()


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def counts(paths: list[Path]) -> dict[str, int]:
    suites = [
        suite for path in paths for suite in ElementTree.parse(path).getroot().iter("testsuite")
    ]
    total, skipped, failures, errors = (
        sum(int(suite.get(key, 0)) for suite in suites)
        for key in ("tests", "skipped", "failures", "errors")
    )
    failed = failures + errors
    return {"passed": total - failed - skipped, "failed": failed, "skipped": skipped}


def failures(paths: list[Path]) -> list[str]:
    """The names of the tests that failed, without their parameters."""
    names = set()
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                module = (case.get("classname") or "").rpartition(".")[2]
                names.add(f"{module}.{(case.get('name') or '').partition('[')[0]}")
    return sorted(names)


def findings(log: Path) -> int | None:
    """How much a tool found; None where it did not come to its summary."""
    summary = re.search(r"SUMMARY: (\d+) ", log.read_text()) if log.exists() else None
    return int(summary[1]) if summary else None


def write(folder: Path) -> str | None:
    gpu = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    name, driver = gpu.splitlines()[0].split(", ")
    compiler = output(sys.executable, "-c", NVRTC)
    version = re.match(r"NVRTC ([\d.]+)", compiler)
    if not version:
        return compiler.strip()
    unfinished = [
        path.stem for path in folder.glob("*-*.out") if not path.with_suffix(".xml").exists()
    ]
    if unfinished:
        return f"no result of {', '.join(unfinished)}"
    record = {
        "device": name,
        "driver": driver,
        "nvrtc": version[1],
        "digest": digest(),
        "tests": counts(list(folder.glob("*.xml"))),
        "failures": failures(list(folder.glob("*.xml"))),
        "sanitizer": {tool: findings(folder / f"{tool}.log") for tool in TOOLS},
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
    print(RECORD.read_text(), end="")
    return complaint(record)


def check() -> str | None:
    if not RECORD.exists():
        return f"{RECORD.name} is missing: {REMEDY}"
    record = json.loads(RECORD.read_text())
    if SINCE and record["digest"] == digest():
        return f"{RECORD.name} is of all sources: SINCE is to be emptied"
    if record["digest"] != digest(SINCE):
        return f"{RECORD.name} is of other sources: {REMEDY}"
    for name, (line, why) in SINCE.items():
        print(f"{RECORD.name}: {name} has `{line.strip()}` since: {why}")
    return complaint(record)


def complaint(record: dict[str, Any]) -> str | None:
    tests, sanitizer = record["tests"], record["sanitizer"]
    names = set(record["failures"])
    for name in sorted(names & set(EXCUSED)):
        print(f"{RECORD.name}: {name} failed: {EXCUSED[name]}")
    if names - set(EXCUSED) or bool(tests["failed"]) != bool(names) or not tests["passed"]:
        return f"{RECORD.name}: {tests['failed']} tests failed, {tests['passed']} passed"
    unclean = [tool for tool in TOOLS if sanitizer[tool] != 0]
    return f"{RECORD.name}: not clean under {', '.join(unclean)}" if unclean else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FOLDER")
    action.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    sys.exit(check() if arguments.check else write(arguments.write))


if __name__ == "__main__":
    main()
