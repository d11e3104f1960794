"""Event files in, detections out."""

from __future__ import annotations

from whimbrel.io.detections import write_detections
from whimbrel.io.events import write_events
from whimbrel.io.files import EventFiles, ReadBatch, read_events
from whimbrel.io.rejected import RejectedWriter

__all__ = ["EventFiles", "ReadBatch", "RejectedWriter", "read_events", "write_detections", "write_events"]
