import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0023_groups_become_teams'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='channel',
            name='team',
        ),
        migrations.RenameField(
            model_name='channel',
            old_name='of_team',
            new_name='team',
        ),
        migrations.AlterField(
            model_name='channel',
            name='team',
            field=models.ForeignKey(blank=True, help_text='Only subscriptions of this team and of its members may use it. Both empty: all subscriptions.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='channels', to='webapp.team', verbose_name='team'),
        ),
        migrations.RemoveField(
            model_name='subscription',
            name='group',
        ),
        migrations.AddConstraint(
            model_name='channel',
            constraint=models.CheckConstraint(condition=models.Q(('owner', None), ('team', None), _connector='OR'), name='channel_of_a_user_or_a_team'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('team__isnull', False), ('user', None)), models.Q(('team', None), ('user__isnull', False)), _connector='OR'), name='subscription_of_a_user_or_a_team', violation_error_message='a subscription must be of a user or of a team'),
        ),
    ]
