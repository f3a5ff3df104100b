"""What an operator may have done again: windows summed up anew, and a conflicting charge issued anew."""

from datetime import datetime
from typing import Any

from django.db import connections

from metering.consumption import statements
from metering.consumption.window import ALIAS
from metering.consumption.window_length import ensure_window_length


def remark(*, cluster_id: str, begin: datetime, end: datetime) -> int:
    """Mark every window dirty that holds events of the cluster from `begin` to before `end`; how many there are.

    Needed only after something else than the receiver changed the stored events, such as a restore.
    """
    values: dict[str, Any] = {"cluster": cluster_id, "from": begin, "to": end, "length": ensure_window_length()}
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statements.REMARK, values)
        marked: int = cursor.rowcount
    return marked


def reissue(*, charge_id: str) -> bool:
    """Have a conflicting charge posted again, as the generation after the one that billing holds. Billing then charges
    what is summed up here, whatever stood there before. False if there is no such charge that conflicts.
    """
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statements.REISSUE, {"charge": charge_id})
        issued: int = cursor.rowcount
    return issued == 1
