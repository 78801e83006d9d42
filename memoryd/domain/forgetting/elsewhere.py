"""What other daemons have purged leaves the memory of this one."""

from __future__ import annotations

from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.model.change import PURGE

__all__ = ["PurgesElsewhere"]


class PurgesElsewhere:
    """
    Looks now and then whether something was purged, by the mark of the last purge, which no two commits leave alike.

    An index is brought up when it is asked for, so nothing that is gone is served; but one that no one asks for would
    hold it until it is evicted.
    """

    def __init__(self, ports: Ports) -> None:
        """Begin with nothing seen."""
        self._ports = ports
        self._seen: datetime | None = None

    async def look(self) -> int:
        """Drop the indexes of owners where something was purged elsewhere, and return how many; also other copies."""
        ports = self._ports
        marked = (await ports.store.work.marks()).get(PURGE)
        if marked == self._seen:
            return 0
        dropped = [await indexes.forget_purged() for indexes in (ports.indexes, ports.episodes, ports.notes)]
        self._seen = marked  # only then: what failed is tried again
        return sum(dropped)
