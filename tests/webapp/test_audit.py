"""The audit log: every change by every way, in its transaction, without secrets, and for good."""

import ast
import re
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from tests.webapp.conftest import PLAN
from tests.webapp.teamwork import scene
from webapp import tasks
from webapp.audit.registry import UNWATCHED, WATCHED
from webapp.models import (
    ApiToken,
    AuditEntry,
    BaseMap,
    Channel,
    EnabledFilter,
    Layer,
    Membership,
    Query,
    RemovedExamples,
    SavedView,
    ShareLink,
    Space,
    Stream,
    Subscription,
    Team,
)
from webapp.models.audit import FixedRow
from webapp.models.audited import AuditedQuerySet

pytestmark = pytest.mark.django_db(transaction=True)
SOURCES = sorted((Path(__file__).parents[2] / "webapp").rglob("*.py"))
OURS = [model for model in WATCHED if model._meta.app_label == "webapp"]
FOREIGN = [model for model in WATCHED if model._meta.app_label != "webapp"]


# The gates.


def test_every_model_is_recorded_or_says_why_not():
    names = {model.__name__ for model in apps.get_app_config("webapp").get_models()}
    assert names == {model.__name__ for model in OURS} | set(UNWATCHED)
    assert {model.__name__ for model in FOREIGN} == {get_user_model().__name__, "Group"}


@pytest.mark.parametrize("model", WATCHED)
def test_every_field_is_recorded_or_is_declared_as_state(model):
    watched = WATCHED[model]
    fields = {field.name for field in model._meta.fields}
    declared = [*watched.fields, *watched.state, *watched.secrets]
    assert sorted(declared) == sorted(fields)
    assert set(watched.many) == {field.name for field in model._meta.many_to_many}


@pytest.mark.parametrize("model", OURS)
def test_statements_for_many_rows_are_recorded_for_each_of_our_models(model):
    # The base manager is what deletions and related objects write by.
    for manager in (*model._meta.managers, model._base_manager):
        assert isinstance(manager.get_queryset(), AuditedQuerySet)


# What writes to the database without passing by the query sets and signals that record.
UNRECORDED = {"_base_manager", "_raw_delete", "_update", "raw", "cursor", "execute", "save_base"}
# Of other models than ours there are no query sets that record, so statements for many of their rows are forbidden.
MANY = {"update", "bulk_create", "bulk_update", "aupdate", "abulk_create", "abulk_update"}


# Pipelines of Redis and files of tiles execute, too, and so do commands.
ELSEWHERE = {"pipeline", "tables", "super()"}
# The log itself reads rows as they were, and deletes its expired rows. A backup locks the database and reads it.
ALLOWED = {("recording.py", "_base_manager"), ("audit.py", "_raw_delete"), ("moment.py", "execute")}


def test_nothing_in_the_sources_writes_past_the_audit_log():
    found = set()
    for path in (path for path in SOURCES if "migrations" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in UNRECORDED and ast.unparse(node.value) not in ELSEWHERE:
                found.add((path.name, node.attr))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MANY:
                text = ast.unparse(node.func.value)
                if re.search(r"get_user_model\(\)|\bUser\b|\bGroup\b", text):
                    found.add((path.name, text))
    assert found == ALLOWED


# Every model by every way of writing.


@pytest.fixture
def harbour(streams):
    return scene()


def samples(harbour):
    """Return, for each model, the values of a new row, a change of a field, and how the log shows the change."""
    owner, team = harbour.users["owner"], harbour.team
    query = {"owner": owner, "name": "q", "stream": "ships", "plan": PLAN}
    channel = Channel.objects.create(name="first", kind="webhook", options={"url": "https://a.example"})
    return {
        Query: (query, {"name": "p"}),
        Layer: ({"owner": owner, "name": "areas", "space_id": "earth"}, {"title": "Areas"}),
        SavedView: ({"owner": owner, "name": "v", "address": "#1/2/3"}, {"address": "#4/5/6"}),
        Team: ({"name": "t"}, {"name": "u"}),
        Membership: ({"team": team, "user": owner}, {"role": "admin"}),
        ShareLink: (
            {"owner": owner, "name": "l", "digest": "d" * 64, "expires": timezone.now()},
            {"name": "m"},
        ),
        RemovedExamples: ({"user": owner}, None),
        Stream: ({"name": "s", "title": "S", "transport": "stdin", "decoder": "ais"}, {"enabled": False}),
        Space: ({"name": "prices", "definition": PRICES}, {"title": "Prices"}),
        BaseMap: ({"name": "map", "address": "https://a.example/{z}/{x}/{y}"}, {"max_zoom": 9}),
        EnabledFilter: ({"name": "f"}, {"enabled": True}),
        Channel: ({"name": "hook", "kind": "webhook", "options": {"url": "https://a.example"}}, {"enabled": False}),
        Subscription: ({"user": owner, "channel": channel}, {"severity": "critical"}),
        ApiToken: ({"user": owner, "name": "t", "digest": "e" * 64}, {"name": "u"}),
        get_user_model(): ({"username": "new"}, {"is_staff": True}),
        Group: ({"name": "g"}, {"name": "h"}),
    }


PRICES = {"dimensions": [{"name": "price", "lo": 0, "hi": 9}]}


def logged(model, action):
    """Return what the log has of a kind and an action, the newest first."""
    return list(AuditEntry.objects.filter(kind=WATCHED[model].kind, action=action))


@pytest.mark.parametrize("model", WATCHED)
def test_a_row_is_recorded_when_it_is_made_changed_and_deleted(model, harbour):
    values, change = samples(harbour)[model]
    row = model.objects.create(**values)
    (entry, *_) = logged(model, "created")
    assert (entry.key, entry.way) == (str(row.pk), "command")
    if change is not None:
        (field, value), before = *change.items(), AuditEntry.objects.count()
        setattr(row, field, value)
        row.save()
        row.save()  # nothing differs any more
        (entry, *_) = logged(model, "changed")
        assert list(entry.changes) == [field] and entry.changes[field][1] == value
        assert AuditEntry.objects.count() == before + 1
    key = str(row.pk)
    row.delete()
    assert logged(model, "deleted")[0].key == key


@pytest.mark.parametrize("model", OURS)
def test_statements_for_many_rows_record_each_row(model, harbour):
    values, change = samples(harbour)[model]
    count = len(logged(model, "created"))
    (row,) = model.objects.bulk_create([model(**values)])
    assert len(logged(model, "created")) == count + 1
    if change is not None:
        ((field, value),) = change.items()
        model.objects.filter(pk=row.pk).update(**change)
        assert logged(model, "changed")[0].changes[field][1] == value
        setattr(row, field, values.get(field, model._meta.get_field(field).get_default()))
        model.objects.bulk_update([row], [field])
        assert logged(model, "changed")[0].changes[field][0] == value
    model.objects.filter(pk=row.pk).delete()
    assert logged(model, "deleted")[0].key == str(row.pk)


@pytest.mark.parametrize("model", WATCHED)
def test_neither_a_change_nor_its_entry_is_there_alone(model, harbour, monkeypatch):
    values, change = samples(harbour)[model]
    count = AuditEntry.objects.count()

    def fails(*_, **__):
        raise ZeroDivisionError

    row = model.objects.create(**values)
    with monkeypatch.context() as broken:
        broken.setattr(AuditEntry, "save", fails)
        broken.setattr(type(AuditEntry.objects.all()), "bulk_create", fails)
        attempts = [lambda: row.delete()]
        if change is not None:
            attempts.append(lambda: model(**vars_of(row) | change).save())
            if model in OURS:
                attempts.append(lambda: model.objects.filter(pk=row.pk).update(**change))
        for attempt in attempts:
            with pytest.raises(ZeroDivisionError):
                attempt()
    kept = model.objects.get(pk=row.pk)
    assert all(getattr(kept, name) == getattr(row, name) for name in change or {})
    assert AuditEntry.objects.count() == count + 1
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        kept.delete()
        raise ZeroDivisionError
    assert AuditEntry.objects.count() == count + 1


def vars_of(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.fields}


def test_what_a_deletion_brings_with_it_is_recorded(harbour):
    harbour.layers["team"].delete()
    harbour.team.delete()
    entries = AuditEntry.objects.exclude(action="created")
    told = {(entry.kind, entry.name.split(" (")[0], entry.action) for entry in entries}
    assert told >= {
        ("team", "wharf", "deleted"),
        ("member", "viewer in wharf", "deleted"),
        ("share link", "for guests", "deleted"),
        ("query", "team", "changed"),
        ("layer", "team", "deleted"),
        ("view", "team", "changed"),
    }
    changed = entries.get(kind="query", action="changed")
    assert changed.changes == {"team": ["wharf", None]} and changed.team_name == "wharf"


def test_a_query_that_is_ended_is_recorded_as_deleted_once(harbour):
    query = harbour.queries["team"]
    query.status = Query.CANCELLED
    query.save()
    query.save(update_fields=["status"])
    Query.objects.filter(pk=query.pk).update(status=Query.CANCELLED, acknowledged=2)
    assert [entry.key for entry in logged(Query, "deleted")] == [str(query.pk)]
    Query.objects.filter(pk=harbour.queries["private"].pk).update(status=Query.CANCELLED)
    assert len(logged(Query, "deleted")) == 2


def test_what_lookout_keeps_for_itself_is_not_recorded(harbour):
    count = AuditEntry.objects.count()
    Query.objects.update(status=Query.FAILED, error="x", acknowledged=3, epoch="e")
    Layer.objects.update(progress=0.5)
    harbour.users["owner"].last_login = timezone.now()
    harbour.users["owner"].save(update_fields=["last_login"])
    assert AuditEntry.objects.count() == count


def test_relations_are_recorded_by_what_was_added_and_removed(harbour):
    link, query = harbour.link, harbour.queries["private"]
    link.queries.add(query)
    assert logged(ShareLink, "changed")[0].changes == {"queries": [None, [str(query)]]}
    query.share_links.remove(link)
    assert logged(ShareLink, "changed")[0].changes == {"queries": [[str(query)], None]}
    link.queries.clear()
    assert logged(ShareLink, "changed")[0].changes == {"queries": [[str(harbour.queries["team"])], None]}
    user, permission = harbour.users["owner"], Permission.objects.first()
    user.user_permissions.add(permission)
    assert logged(get_user_model(), "changed")[0].changes == {"user_permissions": [None, [str(permission)]]}


# By which way.


async def test_a_change_by_the_websocket_says_who_and_from_where(harbour, connect):
    async with connect(harbour.users["analyst"]) as socket:
        await socket.tell("query.edit", id=1, query=harbour.queries["team"].pk, name="renamed")
        await socket.hear("query.status", id=1)
    entry = await sync_to_async(AuditEntry.objects.first)()
    assert (entry.user_name, entry.way, entry.kind) == ("analyst", "websocket", "query")
    assert entry.changes == {"name": ["team", "renamed"]} and entry.team == harbour.team.pk


def test_changes_by_page_admin_and_command_say_so(harbour, client, staff):
    client.force_login(harbour.users["admin"])
    client.post(f"/teams/{harbour.team.pk}/change", {"action": "put", "name": "stranger", "role": "viewer"})
    entry = AuditEntry.objects.first()
    assert (entry.user_name, entry.way, entry.address) == ("admin", "http", "127.0.0.1")
    client.force_login(staff)
    ships = Stream.objects.get(name="ships")
    form = {"title": "Vessels", "icon": "ship", "enabled": "on", "max_ahead_s": "300", "transport": "stdin"}
    response = client.post(f"/admin/webapp/stream/{ships.pk}/change/", form | {"decoder": "ais"})
    assert response.status_code == 302, response.content[:3000]
    entry = AuditEntry.objects.filter(kind="stream").first()
    assert (entry.user_name, entry.way) == ("root", "admin") and entry.changes["title"] == ["Ships", "Vessels"]
    call_command("create_login_link", "--user", "root")
    call_command("createsuperuser", "--noinput", "--username", "eve", "--email", "")
    entry = AuditEntry.objects.filter(kind="user", name="eve").first()
    assert (entry.way, entry.action) == ("command", "created")


def test_no_secret_is_written(harbour, client):
    channel = Channel.objects.create(
        name="hook",
        kind="webhook",
        options={"url": "https://u:s3cret@a.example/?k=s3cret"},
        secrets={"token": "s3cret"},
    )
    channel.secrets = {"token": "s3cret2"}
    channel.save()
    stream = Stream.objects.get(name="ships")
    stream.transport_options = {
        "headers": {"X-Key": "s3cret"},
        "url": "http://a.example/?token=s3cret",
        "password": "s3cret",
    }
    stream.save()
    user = harbour.users["owner"]
    user.set_password("s3cret")
    user.save()
    secret = ApiToken(user=user, name="t").draw()
    text = str(list(AuditEntry.objects.values()))
    assert "s3cret" not in text and secret not in text and harbour.secret not in text
    assert user.password not in text and harbour.link.digest not in text
    assert logged(Channel, "changed")[0].changes == {"secrets": ["…", "…"]}
    assert logged(get_user_model(), "changed")[0].changes == {"password": ["…", "…"]}


# For good.


def test_rows_of_the_log_cannot_be_changed_or_deleted(harbour, client, staff):
    entry = AuditEntry.objects.first()
    entry.user_name = "somebody else"
    for change in (
        entry.save,
        entry.delete,
        lambda: AuditEntry.objects.update(user_name="x"),
        lambda: AuditEntry.objects.all().delete(),
        lambda: AuditEntry.objects.bulk_update([entry], ["user_name"]),
    ):
        with pytest.raises(FixedRow):
            change()
    client.force_login(staff)
    at = f"/admin/webapp/auditentry/{entry.pk}"
    assert client.get(f"{at}/change/").status_code == 200
    assert "_save" not in client.get(f"{at}/change/").content.decode()
    assert client.post(f"{at}/change/", {"user_name": "x"}).status_code == 403
    assert client.post(f"{at}/delete/", {"post": "yes"}).status_code == 403
    assert client.get("/admin/webapp/auditentry/add/").status_code == 403
    assert client.get("/admin/webapp/auditentry/?action=created&kind=query&way=command").status_code == 200
    assert AuditEntry.objects.filter(pk=entry.pk).exists()


def test_rows_end_with_the_time_that_the_setting_says(harbour, settings):
    count = AuditEntry.objects.count()
    AuditEntry(way="http", action="changed", kind="query", key="1", name="old", changes={}, at=ago(11)).save()
    settings.AUDIT_DAYS = 0
    assert tasks.forget_changes() == 0
    settings.AUDIT_DAYS = 10
    assert tasks.forget_changes() == 1
    assert AuditEntry.objects.count() == count


def ago(days):
    return timezone.now() - timedelta(days=days)


def test_admins_of_a_team_see_its_changes_and_no_others(harbour, client):
    harbour.queries["team"].name = "of the team now"
    harbour.queries["team"].save()
    harbour.queries["private"].name = "of nobody else"
    harbour.queries["private"].save()
    harbour.layers["team"].team = harbour.other
    harbour.layers["team"].save()
    client.force_login(harbour.users["admin"])
    text = client.get(f"/teams/{harbour.team.pk}/").content.decode()
    assert "of the team now" in text and "of nobody else" not in text and "wharf → airport" in text
    assert AuditEntry.objects.of_team(harbour.other.pk).filter(kind="layer", action="changed").count() == 1


def test_every_write_of_the_actions_leaves_an_entry(harbour, client):
    """Watch the statements that reach the database while people act, and compare them with the log."""
    tables = {model._meta.db_table: model for model in WATCHED}
    written = []

    def note(execute, sql, params, many, context):
        found = re.match(r'(?:INSERT INTO|UPDATE|DELETE FROM) "(\w+)"', sql)
        if found and found.group(1) in tables:
            set_ = re.findall(r'"(\w+)" = ', sql.split(" WHERE ")[0])
            watched = WATCHED[tables[found.group(1)]]
            columns = {
                tables[found.group(1)]._meta.get_field(name).column for name in (*watched.fields, *watched.secrets)
            }
            if not sql.startswith("UPDATE") or columns & set(set_):
                written.append(watched.kind)
        return execute(sql, params, many, context)

    before = AuditEntry.objects.last() and AuditEntry.objects.first().pk
    with connection.execute_wrapper(note):
        client.force_login(harbour.users["admin"])
        for form in ({"action": "put", "name": "stranger", "role": "viewer"}, {"action": "remove", "name": "stranger"}):
            client.post(f"/teams/{harbour.team.pk}/change", form)
        harbour.layers["team"].delete()
        harbour.team.delete()
        get_user_model().objects.filter(username="owner").delete()
    kinds = set(AuditEntry.objects.filter(pk__gt=before).values_list("kind", flat=True))
    assert set(written) <= kinds | {"user"} and "member" in written
