#!/usr/bin/env python3
"""Rewrites `corpus/TARGET` with the fewest inputs that reach every branch, within what is committed.

    python3 fuzz/minimise.py TARGET [--bin BINARY] [FOLDER ...]    # FOLDERs hold further inputs

libFuzzer tells which branches each input reaches; the input with the most new ones is taken again and again, the
shorter one of two that are alike, until nothing is new or the limits that `crates/game/tests/corpora.rs` checks are met.
"""

import argparse
import hashlib
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MOST_FILES, MOST_BYTES = 200, 200_000


def reached(target, binary, folders):
    """The inputs, and the set of branches that each reaches."""
    command = [binary] if binary else ["cargo", "+nightly", "fuzz", "run", target, "--"]
    with tempfile.TemporaryDirectory() as scratch:
        control, out = pathlib.Path(scratch, "control"), pathlib.Path(scratch, "out")
        out.mkdir()
        flags = ["-set_cover_merge=1", "-use_counters=0", f"-merge_control_file={control}"]
        subprocess.run(command + flags + [out, *folders], cwd=HERE, check=True, capture_output=True)
        lines = control.read_text().splitlines()
    count = int(lines[0])
    files = [pathlib.Path(HERE, line) for line in lines[2 : 2 + count]]
    branches = {}
    for words in map(str.split, lines[2 + count :]):
        if words[0] == "FT":
            branches[files[int(words[1])]] = set(map(int, words[2:]))
    return branches


def cover(branches):
    """The inputs to keep, their number of bytes, and how many branches are left out."""
    kept, size, left = {}, 0, set().union(*branches.values())
    contents = {file: file.read_bytes() for file in branches}
    while left and branches and len(kept) < MOST_FILES:
        best = max(branches, key=lambda file: (len(branches[file] & left), -len(contents[file])))
        if not branches[best] & left:
            break
        new = branches.pop(best)
        if size + len(contents[best]) <= MOST_BYTES:
            data = contents[best]
            kept[hashlib.sha1(data).hexdigest()] = data
            size += len(data)
            left -= new
    return kept, size, len(left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--bin", help="the fuzzer, where it is built already")
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    args = parser.parse_intermixed_args()
    corpus = HERE / "corpus" / args.target
    folders = [corpus, *(folder.resolve() for folder in args.folders)]
    kept, size, left = cover(reached(args.target, args.bin, folders))
    shutil.rmtree(corpus)
    corpus.mkdir()
    for name, data in kept.items():
        (corpus / name).write_bytes(data)
    print(f"{args.target}: {len(kept)} inputs, {size} bytes, {left} branches left out")


if __name__ == "__main__":
    main()
