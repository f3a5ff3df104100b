"""Wires everything and owns no rule."""
