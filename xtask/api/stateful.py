"""Where requests follow links: a list shows what there is, unless a link says which part of it.

Filters that are made up would leave nothing to follow; they are tried elsewhere.
"""

import schemathesis

KEPT = {"cluster", "limit", "api-version", "work", "rollouts", "wait", "unmentioned", "dry_run"}


@schemathesis.hook
def map_query(context, query):
    return {name: value for name, value in (query or {}).items() if name in KEPT}
