"""Checkpoints and outputs: folders for files, junk, other formats, and numbers that no long can hold."""

from tests.bad_input.case import (
    BEYOND_64_BITS,
    BINARY,
    CHECKPOINT,
    DEEP,
    LEDGER,
    MANIFEST,
    STREAM_FILE,
    Case,
    Step,
    cut,
    fifo,
    folder,
    forbid,
    loop,
    remove,
    write,
)

OFFSETS, COMMITS, SOURCE = f"{CHECKPOINT}/offsets", f"{CHECKPOINT}/commits", f"{CHECKPOINT}/sources/0"
STATE = f"{CHECKPOINT}/state"
META = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'
BIG_META = META.replace("0", str(BEYOND_64_BITS), 1)


def _damaged(*given: Step) -> Case:
    """Damage that is shown in the report; of a checkpoint without state, which has none of its own."""
    return Case(f"inspect {CHECKPOINT}", 3, None, remove(STATE), *given, says="Damage (")


CASES = (
    # inspect: damage is a part of the report
    Case(f"inspect {CHECKPOINT}", 0, None, remove(STATE)),
    _damaged(write(f"{OFFSETS}/5")),
    _damaged(write(f"{OFFSETS}/5", BINARY)),
    _damaged(write(f"{OFFSETS}/5", "v1")),
    _damaged(write(f"{OFFSETS}/5", "v")),
    _damaged(write(f"{OFFSETS}/5", "v99\n{}\n{}")),
    _damaged(write(f"{OFFSETS}/5", "v1\n{}\n" + DEEP)),
    _damaged(write(f"{OFFSETS}/5", f"v1\n{DEEP}\n-")),
    _damaged(write(f"{OFFSETS}/5", "v1\n[]\n-")),
    _damaged(write(f"{OFFSETS}/5", f"v1\n{BIG_META}\n-")),
    _damaged(write(f"{OFFSETS}/5", f"v1\n{META.replace('0', '1.5', 1)}\n-")),
    _damaged(write(f"{OFFSETS}/5", 'v1\n{"conf":{"a":1}}\n-')),
    _damaged(write(f"{OFFSETS}/5", 'v1\n{"conf":[]}\n-')),
    _damaged(write(f"{OFFSETS}/5", f'v1\n{{"batchWatermarkMs":{"9" * 5000}}}\n-')),
    _damaged(cut(f"{OFFSETS}/5", 40)),
    _damaged(folder(f"{OFFSETS}/6")),
    _damaged(folder(f"{OFFSETS}/5")),
    _damaged(fifo(f"{OFFSETS}/5")),
    _damaged(loop(f"{OFFSETS}/5")),
    _damaged(forbid(f"{OFFSETS}/5")),
    _damaged(remove(f"{OFFSETS}/3")),
    _damaged(write(OFFSETS)),
    _damaged(write(f"{COMMITS}/5", BINARY)),
    _damaged(write(f"{COMMITS}/5", "v1\n[]")),
    _damaged(write(f"{COMMITS}/5", f'v1\n{{"nextBatchWatermarkMs":{BEYOND_64_BITS}}}')),
    _damaged(write(f"{COMMITS}/5", 'v1\n{"nextBatchWatermarkMs":"x"}')),
    _damaged(write(f"{COMMITS}/5", "v1\n" + DEEP)),
    _damaged(folder(f"{COMMITS}/5")),
    _damaged(fifo(f"{COMMITS}/5")),
    _damaged(write(f"{CHECKPOINT}/metadata")),
    _damaged(write(f"{CHECKPOINT}/metadata", BINARY)),
    _damaged(write(f"{CHECKPOINT}/metadata", "{}")),
    _damaged(write(f"{CHECKPOINT}/metadata", '{"id":5}')),
    _damaged(write(f"{CHECKPOINT}/metadata", DEEP)),
    _damaged(folder(f"{CHECKPOINT}/metadata")),
    _damaged(fifo(f"{CHECKPOINT}/metadata")),
    _damaged(remove(f"{CHECKPOINT}/metadata")),
    _damaged(fifo(f"{SOURCE}/5")),
    _damaged(write(f"{SOURCE}/5", BINARY)),
    _damaged(write(f"{SOURCE}/5", f'v1\n{{"path":"x","timestamp":{BEYOND_64_BITS},"batchId":5}}')),
    _damaged(write(f"{SOURCE}/5", "v1\n" + DEEP)),
    Case(f"inspect {CHECKPOINT}", 0, None, remove(STATE), write(f"{OFFSETS}/{10**17}", f"v1\n{META}\n-")),
    _damaged(write(f"{COMMITS}/{10**17}", "v1\n{}")),
    _damaged(write(f"{SOURCE}/{10**17}", "v1\n{}")),
    Case(f"inspect {CHECKPOINT}", 3, None, write(f"{STATE}/0/0/{10**17}.delta"), says="state version 7"),
    Case(f"inspect {CHECKPOINT} --operators", 0, None, write(f"{STATE}/0/0/{10**17}.snapshot")),
    # The plan has one partition: Spark reads no other, and an offline repartition leaves the others there.
    Case(f"inspect {CHECKPOINT} --operators", 0, None, write(f"{STATE}/0/{10**17}/1.delta")),
    Case(
        f"inspect {CHECKPOINT}",
        0,
        None,
        remove(STATE),
        write(f"{OFFSETS}/5", f"v1\n{META.replace('0', str(2**63 - 1), 1)}\n-"),
    ),
    Case("status", 0, None, write(f"{OFFSETS}/5", f"v1\n{META.replace('0', str(2**63 - 1), 1)}\n-")),
    Case("status", 5, None, write(f"{OFFSETS}/{10**17}", f"v1\n{META}\n-")),
    Case("status", 3, None, write(f"{SOURCE}/{10**17}", "v1")),
    *(Case("doctor", 1, None, write(f"{SOURCE}/{name}", "v1")) for name in (10**17, f"{10**17}.compact", 10**30)),
    Case(f"inspect {CHECKPOINT}", 4, "not-a-checkpoint", write(CHECKPOINT)),
    Case(f"inspect {CHECKPOINT}", 4, "not-a-checkpoint", fifo(CHECKPOINT)),
    Case(f"inspect {CHECKPOINT} --sources", 3, None, remove(STATE), write(f"{SOURCE}/5", 'v1\n{"path":5}')),
    Case(f"inspect {CHECKPOINT} --operators", 3, None, fifo(f"{CHECKPOINT}/state/0/_metadata/metadata")),
    Case(f"inspect {CHECKPOINT} --operators", 3, None, write(f"{CHECKPOINT}/state/0/0/6.delta", BINARY)),
    Case(f"inspect {CHECKPOINT} --operators", 3, None, fifo(f"{CHECKPOINT}/state/0/0/6.delta")),
    Case(f"inspect {CHECKPOINT} --operators", 3, None, folder(f"{CHECKPOINT}/state/0/0/6.delta")),
    Case(f"inspect {CHECKPOINT} --operators", 3, None, write(f"{CHECKPOINT}/state/0/0/6.zip", BINARY)),
    Case("inspect per_page --raw state/0/0/6.delta", 3, "foreign", write(f"{CHECKPOINT}/state/0/0/6.delta", BINARY)),
    Case("inspect per_page --raw state/0/0/6.zip", 3, "foreign", write(f"{CHECKPOINT}/state/0/0/6.zip", BINARY)),
    Case("inspect per_page --raw offsets/5", 3, "foreign", write(f"{OFFSETS}/5", BINARY)),
    Case("inspect per_page --format json", 3, None, write(f"{OFFSETS}/5", f"v1\n{META}\n{DEEP}")),
    # Every other verb on the same damage
    Case("status", 3, None, folder(f"{OFFSETS}/6")),
    Case("status", 3, None, fifo(f"{OFFSETS}/6")),
    Case("status", 3, None, write(f"{OFFSETS}/5", "v1\n{}\n" + DEEP)),
    Case("status", 3, None, write(f"{OFFSETS}/5", BINARY)),
    Case("status", 5, None, write(CHECKPOINT)),
    Case("status", 5, None, fifo(CHECKPOINT)),
    Case("status", 3, "stream-file-damaged", folder(STREAM_FILE)),
    Case("status", 3, "stream-file-damaged", write(STREAM_FILE, BINARY)),
    # A name of more digits than any batch has: no entry.
    Case("status --format json", 0, None, write(f"{OFFSETS}/{10**18}", "v1")),
    Case("offsets per_page", 0, None, folder(f"{OFFSETS}/6")),
    Case("offsets per_page", 0, None, write(CHECKPOINT)),
    Case("offsets per_page", 0, None, write(OFFSETS)),
    Case("offsets per_page", 0, None, write(f"{CHECKPOINT}/sources", "x")),
    Case("offsets per_page", 9, "file-inaccessible", fifo(f"{OFFSETS}/5")),
    Case("offsets per_page", 9, "file-inaccessible", loop(f"{OFFSETS}/5")),
    Case("plan rebuild per_page", 9, "file-inaccessible", fifo(f"{OFFSETS}/5")),
    Case("plan rebuild per_page", 9, "file-inaccessible", forbid(f"{COMMITS}/5")),
    # The sink's manifest
    Case("status", 3, None, fifo(f"{MANIFEST}/5")),
    Case("status", 3, None, folder(f"{MANIFEST}/6")),
    Case("status", 3, None, write(f"{MANIFEST}/5", BINARY)),
    Case("status", 3, None, write(f"{MANIFEST}/5", "v1\n" + DEEP)),
    Case("status", 3, None, write(f"{MANIFEST}/{10**18}", "v1")),
    Case("status", 3, None, write(f"{MANIFEST}/{10**17}", "v1")),
    Case("status", 5, None, write(MANIFEST)),
    Case("status", 5, None, write("out")),
    Case("status", 5, None, fifo("out")),
    Case("offsets per_page", 3, "sink-unreadable", fifo(f"{MANIFEST}/5")),
    Case("offsets per_page", 3, "sink-unreadable", write(f"{MANIFEST}/5", BINARY)),
    Case("offsets per_page", 3, "sink-unreadable", forbid(f"{MANIFEST}/5")),
    Case("offsets per_page", 3, "sink-unreadable", write(f"{MANIFEST}/9.compact", BINARY)),
    *(
        Case(command, 3, "sink-unreadable", write(f"{MANIFEST}/5", content))
        for command in ("offsets per_page", "plan rebuild per_page")
        for content in ('v1\n{"path":5}', "v1\n" + DEEP, f'v1\n{{"path":"file:///x","size":{BEYOND_64_BITS}}}')
    ),
    Case("offsets per_page", 3, "sink-unreadable", write(f"{MANIFEST}/6", 'v1\n{"path":5}')),
    *(
        Case(command, 0, None, write(f"{MANIFEST}/{10**17}", "v1"), creates=(LEDGER,))
        for command in ("offsets per_page", "offsets per_page --at contributing", "offsets per_page --at batch:3")
    ),
    Case("plan rebuild per_page", 5, "sink-cut-unknown", write(f"{MANIFEST}/{10**17}", "v1"), creates=(LEDGER,)),
    Case(
        "plan rebuild per_page --at batch:3",
        5,
        "sink-cut-unknown",
        write(f"{MANIFEST}/{10**17}", "v1"),
        creates=(LEDGER,),
    ),
    Case("plan rebuild per_page", 3, "sink-unreadable", fifo(f"{MANIFEST}/5")),
    Case("plan rebuild per_page", 3, "sink-unreadable", write(f"{MANIFEST}/5")),
)
