"""Reads the curves of a run with TensorBoard itself and compares them with metrics.jsonl. From the repository's root:

    python3 -m venv /tmp/tensorboard && /tmp/tensorboard/bin/pip install tensorboard
    PACE_TENSORBOARD_RUN=/tmp/tensorboard/run cargo test -p pace-lab --test it curves_and_rows
    /tmp/tensorboard/bin/python crates/pace-lab/tests/tensorboard/read_back.py /tmp/tensorboard/run
"""

import json
import struct
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run = Path(sys.argv[1])
expected = {}
for line in (run / "metrics.jsonl").read_text().splitlines():
    row = json.loads(line)
    step = row.pop("step")
    for tag, value in row.items():
        # TensorBoard keeps single precision.
        rounded = struct.unpack("<f", struct.pack("<f", value))[0]
        expected.setdefault(tag, []).append((step, rounded))

events = EventAccumulator(str(run / "tb"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
found = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
assert found == expected, "TensorBoard reads something else than metrics.jsonl has"
assert events.file_version == 2.0, events.file_version
print(f"{len(found)} tags, {sum(map(len, found.values()))} points: all equal")
