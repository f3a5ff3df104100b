"""Proves the invariants of the whole system from its databases alone, with the rights of the read roles."""
