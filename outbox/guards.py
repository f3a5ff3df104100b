"""Triggers that no session setting can switch off.

`django-pgtrigger` declares and migrates them, but its own template lets a session name triggers to ignore. These guards
are compiled without that clause, with a fixed search path and their own SQLSTATE class, so they hold for every login
role, the table owner included (who can still drop them by DDL, which is what migrations are for).
"""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length
from django.db.models.lookups import Exact
from pgtrigger import compiler

REFUSED = "OB100"
"""SQLSTATE of every refusal by a guard; the constraint name in the error is the guard's name."""

NEW_ROWS = pgtrigger.Referencing(new="new_rows")  # type: ignore[no-untyped-call]  # pgtrigger does not type it
"""The rows of one INSERT statement, for guards that look at all of them at once."""


class GuardSql(compiler.UpsertTriggerSql):
    """The installation SQL, without the clause that honours `pgtrigger.ignore`."""

    def get_template(self) -> str:
        return """
            CREATE OR REPLACE FUNCTION {pgid}()
            RETURNS TRIGGER AS $$
                {declare}
                BEGIN
                    {func}
                END;
            $$ LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp;

            DROP TRIGGER IF EXISTS {pgid} ON {table};
            CREATE {constraint} TRIGGER {pgid}
                {when} {operation} ON {table}
                {timing}
                {referencing}
                FOR EACH {level} {condition}
                EXECUTE PROCEDURE {execute};

            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class Guard(pgtrigger.Trigger):
    """A trigger with free SQL in `func` that cannot be ignored."""

    def compile(self, model: models.Model) -> compiler.Trigger:
        return compiler.Trigger(
            name=self.name,
            sql=GuardSql(
                pgid=self.get_pgid(model),
                declare=self.render_declare(model),
                func=self.render_func(model),
                table=model._meta.db_table,
                constraint="CONSTRAINT" if self.timing else "",
                when=self.when,
                operation=self.operation,
                timing=f"DEFERRABLE INITIALLY {self.timing}" if self.timing else "",
                referencing=self.referencing or "",
                level=self.level,
                condition=self.render_condition(model),
                execute=self.render_execute(model),
            ),
        )


def is_sha256(field: str) -> Q:
    """The column holds 64 lower-case hex digits. One counted pattern would cost PostgreSQL ten times as much."""
    return Q(Exact(Length(field), 64)) & Q(**{f"{field}__regex": r"^[0-9a-f]+$"})


def refusal(guard: str, message: str) -> str:
    """PL/pgSQL that refuses, naming the guard as the constraint so that Python translates by name."""
    text = message.replace("'", "''")
    return f"RAISE EXCEPTION USING ERRCODE = '{REFUSED}', CONSTRAINT = '{guard}', MESSAGE = '{text}';"


def refuse_when(*, name: str, operation: pgtrigger.Operation, condition: str, message: str) -> Guard:
    """Refuse a row-level change for which `condition` (SQL over OLD and NEW) holds.

    The condition stands in the trigger's WHEN clause, so a legal change costs no function call.
    """
    return Guard(
        name=name,
        when=pgtrigger.Before,
        operation=operation,
        condition=pgtrigger.Condition(f"({condition})"),
        func=refusal(name, message),
    )


def append_only(*, name: str, message: str) -> list[Guard]:
    """Refuse every UPDATE, DELETE and TRUNCATE: `<name>_kept` and `<name>_truncate`."""
    return [
        Guard(
            name=f"{name}_kept",
            when=pgtrigger.Before,
            operation=pgtrigger.Update | pgtrigger.Delete,
            func=refusal(f"{name}_kept", message),
        ),
        never_truncate(name=name, message=message),
    ]


def never_delete(*, name: str, message: str) -> list[Guard]:
    """Refuse every DELETE and TRUNCATE: `<name>_delete` and `<name>_truncate`."""
    return [
        Guard(
            name=f"{name}_delete",
            when=pgtrigger.Before,
            operation=pgtrigger.Delete,
            func=refusal(f"{name}_delete", message),
        ),
        never_truncate(name=name, message=message),
    ]


def never_truncate(*, name: str, message: str) -> Guard:
    """Refuse TRUNCATE, which row triggers do not see."""
    return Guard(
        name=f"{name}_truncate",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        func=refusal(f"{name}_truncate", message),
    )
