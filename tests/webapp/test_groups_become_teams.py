"""The update that makes teams of groups with channels or subscriptions."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE, AFTER = [("webapp", "0021_delivery")], [("webapp", "0024_alarms_of_teams")]


def migrated(targets):
    """Migrate the database to a state; return its models."""
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def former():
    """The models before the update; the database is up to date again at the end."""
    yield migrated(BEFORE)
    migrated(MigrationExecutor(connection).loader.graph.leaf_nodes())


@pytest.mark.long
def test_a_group_with_channels_or_subscriptions_becomes_a_team_of_viewers(former):
    user_of, group_of = former.get_model("auth", "User"), former.get_model("auth", "Group")
    channel_of, subscription_of = (former.get_model("webapp", name) for name in ("Channel", "Subscription"))
    ann = user_of.objects.create(username="ann")
    watch, idle = (group_of.objects.create(name=name) for name in ("watch", "idle"))
    for group in (watch, idle):
        ann.groups.add(group)
    channel = channel_of.objects.create(name="of the watch", kind="webhook", team=watch)
    mine = channel_of.objects.create(name="mine", kind="webhook", owner=ann)
    subscription_of.objects.create(group=watch, channel=channel)
    subscription_of.objects.create(user=ann, channel=mine)

    now = migrated(AFTER)
    (team,) = now.get_model("webapp", "Team").objects.all()
    assert team.name == "watch"
    members = now.get_model("webapp", "Membership").objects.values_list("team", "user", "role")
    assert list(members) == [(team.pk, ann.pk, "viewer")]
    channels = now.get_model("webapp", "Channel").objects.order_by("pk").values_list("name", "team", "owner")
    assert list(channels) == [("of the watch", team.pk, None), ("mine", None, ann.pk)]
    subscriptions = now.get_model("webapp", "Subscription").objects.order_by("pk").values_list("team", "user")
    assert list(subscriptions) == [(team.pk, None), (None, ann.pk)]
    assert ann.groups.count() == 2  # groups stay, for permissions in the admin
