from __future__ import annotations

from typing import NamedTuple

from slackwater.checkpoint.layout import spark_checksum_path
from slackwater.checkpoint.listing import Listing
from slackwater.checkpoint.logs import damage_of
from slackwater.core.checkpoint import Damage
from slackwater.core.errors import FormatError
from slackwater.formats.checksums import SparkChecksum, hadoop_mismatch, parse_spark_checksum
from slackwater.storage.protocols import ReadStore, hadoop_checksum_path


class CheckedFile(NamedTuple):
    """A file's bytes, whether a checksum of all matched, and damage."""

    data: bytes
    verified: bool
    damage: tuple[Damage, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not any(item.kind == "checksum" for item in self.damage)


def read_checked(store: ReadStore, listing: Listing, path: str, *, thorough: bool = True) -> CheckedFile:
    """Raises ``OSError`` if the file cannot be read.

    ``thorough`` computes Spark's CRC-32C, which needs numpy; else only the recorded size is compared.
    """
    data = store.read(path)
    damage: list[Damage] = []
    verified = False
    beside = hadoop_checksum_path(path)
    if listing.has(beside):
        verified = _check_hadoop(store, path, beside, data, damage)
    beside = spark_checksum_path(path)
    if listing.has(beside) and not path.endswith(".crc"):
        # Either checksum covers every byte of the file, so one that matches is enough.
        verified = _check_spark(store, path, beside, data, damage, thorough=thorough) or verified
    return CheckedFile(data, verified, tuple(damage))


def _check_hadoop(store: ReadStore, path: str, beside: str, data: bytes, damage: list[Damage]) -> bool:
    """Hadoop reads a file unchecked if its side file is malformed; so it is still read, with damage."""
    try:
        mismatch = hadoop_mismatch(data, store.read(beside))
    except (FormatError, OSError) as error:
        damage.append(damage_of(beside, error))
        return False
    if mismatch is not None:
        damage.append(Damage(path, "checksum", "the bytes of Hadoop's checksum", mismatch))
    return mismatch is None


def _check_spark(
    store: ReadStore, path: str, beside: str, data: bytes, damage: list[Damage], *, thorough: bool
) -> bool:
    try:
        checksum = parse_spark_checksum(store.read(beside))
    except (FormatError, OSError) as error:
        damage.append(damage_of(beside, error))
        return False
    mismatch = _spark_mismatch(checksum, data, thorough=thorough)
    if mismatch is not None:
        damage.append(Damage(path, "checksum", "the bytes of Spark's checksum", mismatch))
    return mismatch is None and thorough


def _spark_mismatch(checksum: SparkChecksum, data: bytes, *, thorough: bool) -> str | None:
    if checksum.size != len(data):
        return f"{len(data)} bytes instead of {checksum.size}"
    # Spark 4.1 to 4.3 write CRC32C only; another algorithm is from a newer release, and no damage.
    if not thorough or checksum.algorithm != "CRC32C":
        return None
    from slackwater.formats.crc32c import crc32c  # noqa: PLC0415  (numpy only where state is read)

    found = crc32c(data)
    return None if found == checksum.value else f"CRC32C {found:#010x} instead of {checksum.value:#010x}"
