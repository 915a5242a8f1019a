import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0013_layers_and_base_maps'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='query',
            name='owner',
            field=models.ForeignKey(help_text='Nobody owns the examples of the demonstration.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='queries', to=settings.AUTH_USER_MODEL, verbose_name='owner'),
        ),
        migrations.CreateModel(
            name='RemovedExamples',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to=settings.AUTH_USER_MODEL)),
            ],
            options={'verbose_name_plural': 'removed examples'},
        ),
        migrations.AlterField(
            model_name='event',
            name='partner',
            field=models.CharField(blank=True, help_text='For a join: the key of the feature. For an aggregate: the threshold.', max_length=200, verbose_name='partner'),
        ),
        migrations.AlterField(
            model_name='query',
            name='warning',
            field=models.TextField(blank=True, help_text='What does not work although the query runs.', verbose_name='warning'),
        ),
        migrations.AlterField(
            model_name='stream',
            name='retention_s',
            field=models.FloatField(blank=True, help_text='Stored elements older than this are deleted, a file at a time. Empty: never. A day is 86400.', null=True, validators=[django.core.validators.MinValueValidator(60), django.core.validators.MaxValueValidator(31622400000)], verbose_name='retention [s]'),
        ),
        migrations.AlterField(
            model_name='stream',
            name='stored',
            field=models.BooleanField(default=False, help_text='Store every element in the history. Otherwise only the newest one of each object is kept.', verbose_name='store elements'),
        ),
        migrations.AlterField(
            model_name='stream',
            name='ttl_s',
            field=models.FloatField(blank=True, help_text='An object without a report for this many seconds leaves every answer. Empty: never.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='time to live [s]'),
        ),
    ]
