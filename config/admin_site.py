"""The admin as a Django app: its default site is the operators' home, and it loads the pages of the owners' apps only.

Libraries bring admin pages of their own; those write, so they are not loaded.
"""

from importlib import import_module

from django.apps import apps
from django.contrib.admin.apps import SimpleAdminConfig
from django.utils.module_loading import module_has_submodule

from config.owners import OWNERS


class OperatorAdminConfig(SimpleAdminConfig):
    default_site = "config.home.site.HomeSite"

    def ready(self) -> None:
        super().ready()
        for app in apps.get_app_configs():
            ours = any(app.label in owner.app_labels for owner in OWNERS) and not app.name.startswith("django.")
            if ours and app.module and module_has_submodule(app.module, "admin"):
                import_module(f"{app.name}.admin")
