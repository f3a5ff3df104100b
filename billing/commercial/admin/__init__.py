"""Plans, subscriptions, how full entitlements are, reservations, usage and sweeps, to be read in billing's section.

No page holds a name or content of the business: there is none in these tables.
"""

from billing.commercial.admin.plans import PlanAdmin
from billing.commercial.admin.reservations import ReservationAdmin
from billing.commercial.admin.subscriptions import EntitlementAdmin, SubscriptionAdmin
from billing.commercial.admin.sweeps import SweepAdmin
from billing.commercial.admin.usage import UsageAdmin
from billing.commercial.models import (
    EntitlementPeriod,
    RuntimeReservation,
    StoredPlan,
    Subscription,
    SweepFinding,
    UsageMeterEvent,
)
from config.readonly_admin import SECTIONS

SECTIONS["billing"].register(StoredPlan, PlanAdmin)
SECTIONS["billing"].register(Subscription, SubscriptionAdmin)
SECTIONS["billing"].register(EntitlementPeriod, EntitlementAdmin)
SECTIONS["billing"].register(RuntimeReservation, ReservationAdmin)
SECTIONS["billing"].register(UsageMeterEvent, UsageAdmin)
SECTIONS["billing"].register(SweepFinding, SweepAdmin)
