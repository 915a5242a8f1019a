from django.db import migrations


def make_teams(apps, _):
    """Make a team of each group that has channels or subscriptions; its users become viewers, who see no more by it."""
    Channel, Subscription, Team, Membership = (
        apps.get_model("webapp", name) for name in ("Channel", "Subscription", "Team", "Membership")
    )
    Group = apps.get_model("auth", "Group")
    used = {*Channel.objects.exclude(team=None).values_list("team", flat=True)}
    used |= {*Subscription.objects.exclude(group=None).values_list("group", flat=True)}
    for group in Group.objects.filter(pk__in=used).order_by("pk"):
        team = Team.objects.create(name=free_name(Team, group.name))
        Membership.objects.bulk_create(
            Membership(team=team, user_id=user, role="viewer") for user in group.user_set.values_list("pk", flat=True)
        )
        Channel.objects.filter(team=group).update(of_team=team)
        Subscription.objects.filter(group=group).update(team=team)


def free_name(model, name):
    """Return a name of at most 80 characters that no team has."""
    names = [name[:80], *(f"{name[:70]} ({number})" for number in range(2, 1000))]
    return next(one for one in names if not model.objects.filter(name=one).exists())


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0022_teams'),
    ]

    operations = [
        migrations.RunPython(make_teams, migrations.RunPython.noop),
    ]
