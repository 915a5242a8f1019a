import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0032_query_warnings'),
    ]

    operations = [
        migrations.AddField(
            model_name='stream',
            name='max_age_s',
            field=models.FloatField(blank=True, help_text='Reports whose time is longer ago change no answer; they are stored if the stream is. Empty: any age.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='most behind the clock [s]'),
        ),
    ]
