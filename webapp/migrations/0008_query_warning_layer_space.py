import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0007_history'),
    ]

    operations = [
        migrations.AddField(
            model_name='query',
            name='warning',
            field=models.TextField(blank=True, default='', help_text='What does not work as it should while it runs.', verbose_name='warning'),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name='layer',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='layers', to='webapp.space', verbose_name='space'),
        ),
    ]
