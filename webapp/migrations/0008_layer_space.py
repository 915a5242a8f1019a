import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0006_event_partner'),
    ]

    operations = [
        migrations.AlterField(
            model_name='layer',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='layers', to='webapp.space', verbose_name='space'),
        ),
    ]
