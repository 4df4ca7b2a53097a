"""Where requests follow links: a list shows what there is, unless a link says which part of it.

Filters that are made up would leave nothing to follow; they are tried elsewhere. Clusters are those that there are, or were.
Which links were followed, and what was answered, is written to the file that FOREWARN_LINKS names.
"""

import json
import os

import every  # noqa: F401, its hooks are for these, too
import schemathesis
from schemathesis.cli import EventHandler, handler
from schemathesis.engine import events

KEPT = {"cluster", "limit", "api-version", "work", "rollouts", "wait", "unmentioned", "dry_run"}

clusters = ["default", "west"]


@schemathesis.hook
def map_query(context, query):
    kept = {name: value for name, value in (query or {}).items() if name in KEPT}
    if "cluster" in kept and kept["cluster"] not in clusters:
        kept["cluster"] = "default"
    return kept


@schemathesis.hook
def after_call(context, case, response):
    names_cluster = case.operation.path.startswith("/v1/clusters") and case.method in ("POST", "PATCH")
    if names_cluster and response.status_code == 200:
        clusters.append(case.body["name"])


@handler()
class Links(EventHandler):
    """Keeps the links that were followed, by what was answered."""

    def __init__(self, *args, **kwargs):
        self.total = 0
        self.followed = {}

    def handle_event(self, ctx, event):
        payload = getattr(event, "payload", None)
        self.total = max(self.total, getattr(payload, "transitions_total", 0))
        if not isinstance(event, events.ScenarioFinished):
            return
        for id, case in event.recorder.cases.items():
            if case.transition is None or not case.is_transition_applied or case.transition.is_inferred:
                continue
            interaction = event.recorder.interactions.get(id)
            answer = getattr(interaction, "response", None)
            if answer is not None:
                self.followed.setdefault(case.transition.id, set()).add(answer.status_code)

    def shutdown(self, ctx):
        with open(os.environ["FOREWARN_LINKS"], "w") as file:
            followed = {id: sorted(answers) for id, answers in self.followed.items()}
            json.dump({"total": self.total, "followed": followed}, file)
