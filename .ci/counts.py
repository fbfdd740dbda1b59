"""Adds up the test reports and prints what ran; a report that is missing or empty is a failure."""

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(paths):
    passed = failed = skipped = 0
    complete = True
    for path in map(Path, paths):
        cases = list(ElementTree.parse(path).iter("testcase")) if path.exists() else []
        bad = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
        left_out = sum(1 for case in cases if case.find("skipped") is not None)
        print(f"{path.stem}: {len(cases) - bad - left_out} passed, {bad} failed, {left_out} skipped")
        complete = complete and bool(cases)
        passed, failed, skipped = passed + len(cases) - bad - left_out, failed + bad, skipped + left_out
    print(f"total: {passed} passed, {failed} failed, {skipped} skipped")
    return 0 if complete and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
