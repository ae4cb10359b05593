"""Does dsdoctor pass a config that DeepSpeed refuses? `python -m tests.bench.config [COUNT] [START]` asks both about seeded
configs, `... keys` about every key with every odd value.

Printed: each config without an error of dsdoctor's that DeepSpeed's config class refuses (there must be none), and how many it
takes although dsdoctor has an error (most of those stop later, when the engine starts).
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.config_truth.generator import configs, one_odd_value_each
from tests.config_truth.judging import errors
from tests.config_truth.oracle import Oracle


def main(cases: Iterator[tuple[int, dict[str, Any], int]]) -> int:
    """Ask, compare, tell; the exit code is 1 when a refused config was passed."""
    passed, harsh, refused, count, began = 0, Counter[str](), 0, 0, time.monotonic()
    with Oracle() as deepspeed:
        for number, made, ranks in cases:
            count += 1
            text = json.dumps(made, indent=1)
            said, found = deepspeed.refuses(text, ranks), errors(text, ranks)
            refused += said is not None
            if said is not None and not found:
                passed += 1
                print(f"passed: {number} on {ranks}: {said[:300]}\n  {json.dumps(made)[:600]}")
            if said is None:
                harsh.update({f"{code} {cause}" for code, cause, _ in found})
    print(
        f"{count} configs in {time.monotonic() - began:.0f} s: DeepSpeed refuses {refused}; of these dsdoctor passes {passed}"
    )
    for row, times in harsh.most_common():
        print(f"  error of dsdoctor, taken by DeepSpeed's config class: {times} x {row}")
    return 1 if passed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["keys"]:
        sys.exit(main(one_odd_value_each()))
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(configs(*(numbers + [3000, 0][len(numbers) :]))))
