"""Child: subscribe the tenants of the measurement in its databases; a member's token for those who upload."""

import os

import django

from tests.bench import children


def main() -> None:
    django.setup()
    from tests.bench.commercial import world

    children.wait_for_start()
    world.make(f"{os.environ['DATABASE_NAME_PREFIX']}billing")
    children.answer(token=world.uploader())


if __name__ == "__main__":
    main()
