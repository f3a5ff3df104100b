"""Try statements that must be refused, and say what refused them."""

from django.db import DatabaseError, connections, transaction


def refusal_of(alias: str, *statements: str) -> str:
    """The constraint that refused (or the SQLSTATE where none is named), at the statement or at COMMIT.

    Raises `AssertionError` if the statements were accepted; they are rolled back then.
    """
    try:
        with transaction.atomic(using=alias):
            with connections[alias].cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            transaction.set_rollback(True, using=alias)
    except DatabaseError as error:
        diagnosis = getattr(error.__cause__, "diag", None)
        return str(getattr(diagnosis, "constraint_name", None) or getattr(error.__cause__, "sqlstate", None))
    raise AssertionError(f"{alias} accepted {statements}")


NO_PRIVILEGE = "42501"
