"""Who may open which address of the site. `webapp.pages.middleware.DeclaredAccess` refuses one without a rule."""

from django.urls import ResolverMatch

PUBLIC, USER, STAFF, TOKEN, LINK = "public", "user", "staff", "token", "link"

# By the names of `webapp.urls`. "user" is anybody who is logged in; which objects they get is decided by
# `webapp.rights.access`. "token" is a user by a login or an API token, "link" whoever has the secret in the address.
RULES: dict[str, str] = {
    "alarms": USER,
    "alarms-browser": USER,
    "alarms-forget": USER,
    "alarms-known": USER,
    "alarms-test": USER,
    "alive": PUBLIC,
    "catalogue": PUBLIC,
    "coast": USER,
    "health": PUBLIC,
    "language": PUBLIC,
    "layer": USER,
    "layer-cancel": USER,
    "layer-features": USER,
    "layer-look": USER,
    "layer-share": USER,
    "layers": USER,
    "login": PUBLIC,
    "login-once": LINK,
    "logout": PUBLIC,
    "map": USER,
    "map-tile": USER,
    "metrics": STAFF,
    "operations": STAFF,
    "operations-figures": STAFF,
    "password": USER,
    "plan-schema": PUBLIC,
    "replay": TOKEN,
    "replay-answers": TOKEN,
    "replay-elements": TOKEN,
    "replay-events": TOKEN,
    "replay-query-events": TOKEN,
    "report": TOKEN,
    "shared": LINK,
    "team": USER,
    "team-channel": USER,
    "team-change": USER,
    "team-subscription": USER,
    "teams": USER,
}


def rule_of(match: ResolverMatch) -> str | None:
    """Return the rule of an address; None if there is none. The admin asks for staff, and for permissions of models."""
    return STAFF if "admin" in match.app_names else RULES.get(match.url_name or "")
