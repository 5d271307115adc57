"""Strict parsing of documents into the values of plans."""

from __future__ import annotations

from collections.abc import Mapping

STRICT: Mapping[str, object] = {"extra": "forbid", "strict": True}
"""No conversions, no unknown fields: pydantic's own names."""
