"""The reference store."""

from memoryd.store.ram.store import RamStore

__all__ = ["RamStore"]
