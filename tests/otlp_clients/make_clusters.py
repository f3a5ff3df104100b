"""Make clusters by what each may send a second: `python -m tests.otlp_clients.make_clusters RATE …`; tokens as JSON."""

import json
import os
import sys

import django


def main(rates: list[int]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from metering.clusters.audit import Actor
    from metering.clusters.clusters import Rate, create_cluster
    from metering.clusters.models import Mode
    from metering.clusters.rotate import rotate
    from metering.clusters.secret_store import secret_store

    actor = Actor.of_command()
    tokens = {}
    for number, rate in enumerate(rates, start=1):
        own = Rate(per_second=rate, burst=rate)
        create_cluster(cluster_id=number, name=f"c{number}", mode=Mode.PER_CLUSTER, rate=own, actor=actor)
        tokens[number] = rotate(cluster_id=number, actor=actor, store=secret_store()).plaintext.text
    print(json.dumps(tokens))


if __name__ == "__main__":
    main([int(rate) for rate in sys.argv[1:]])
