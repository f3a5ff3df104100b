"""Clusters on the pages of telemetry: their numbers, and the way to the page of each."""

from django.db.models import Q
from django.urls import reverse

from config.readonly_admin import Code, Filter, Link, Option, ReadOnlyAdmin

LONGEST = 19
"""Digits of the largest cluster id."""


def is_cluster_id(text: str) -> bool:
    """Whether the text is a cluster's number as events carry it."""
    return text.isascii() and text.isdecimal() and not text.startswith("0") and len(text) <= LONGEST


def cluster_link(cluster_id: str) -> Link:
    """A cluster, leading to its page among the senders."""
    return Link(Code(cluster_id), reverse("telemetry:senders_row", args=[cluster_id]))


def cluster_filter(*order: str) -> Filter:
    """The rows of one cluster, in an order that an index of cluster and time serves."""

    def find(pages: ReadOnlyAdmin, value: str) -> Option | None:
        return Option(value, f"cluster {value}", Q(cluster_id=value), order) if is_cluster_id(value) else None

    return Filter("cluster", "Cluster", find=find)
